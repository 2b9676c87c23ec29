//! Everything generated so far, as one tree: where sequences part, and what it cost.
//!
//! A [`BranchTree`] takes finished or half-finished sequences. Those that begin alike share
//! their first nodes, so the tree shows at a glance what a different token changed.

use serde::{Deserialize, Serialize};

use crate::TokenId;

/// One token of a sequence, and what it cost.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize, Serialize)]
pub struct Taken {
    /// The token.
    pub token: TokenId,
    /// Its log-probability in the raw row, in nats.
    pub raw_logprob: f64,
    /// Its log-probability as drawn; `None` if the pipeline had removed it, and it was forced.
    pub final_logprob: Option<f64>,
}

/// One token after those of its ancestors.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Node {
    /// The node before it; `None` right after the prompt.
    pub parent: Option<usize>,
    /// The token and what it cost.
    pub taken: Taken,
    /// How many tokens were generated, this one included.
    pub length: usize,
    /// The raw log-probabilities up to here together: the logarithm of the product of the
    /// conditionals.
    pub running_logprob: f64,
    /// The branches that go through it.
    pub branches: Vec<usize>,
    /// The nodes that continue it.
    pub children: Vec<usize>,
}

/// Where two branches part, and what each cost from there.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Parting {
    /// How many tokens they share.
    pub shared: usize,
    /// The first token of each that the other does not have.
    pub tokens: [Option<TokenId>; 2],
    /// The log-probability of that token in each, in nats: what the choice itself cost.
    pub choice_logprobs: [Option<f64>; 2],
    /// The raw log-probability of each whole branch.
    pub logprobs: [f64; 2],
    /// The same for each token.
    pub logprobs_per_token: [f64; 2],
    /// Whether they come to the same tokens again later, and how many at the end are the same.
    pub same_ending: usize,
}

/// Sequences that begin at the same prompt.
///
/// # Examples
/// ```
/// use logitscope::{TokenId, strategy::tree::{BranchTree, Taken}};
///
/// let step = |token, raw_logprob| Taken { token: TokenId(token), raw_logprob, final_logprob: None };
/// let mut tree = BranchTree::default();
/// let a = tree.add(&[step(1, -0.5), step(2, -0.25), step(9, -1.0)]);
/// let b = tree.add(&[step(1, -0.5), step(3, -2.0), step(9, -1.0)]);
/// assert_eq!(tree.nodes().len(), 5); // the first token is shared
/// let parting = tree.compare(a, b).expect("two branches");
/// assert_eq!((parting.shared, parting.same_ending), (1, 1));
/// assert_eq!(parting.tokens, [Some(TokenId(2)), Some(TokenId(3))]);
/// assert_eq!(parting.logprobs, [-1.75, -3.5]);
/// ```
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct BranchTree {
    nodes: Vec<Node>,
    /// The last node of every branch; `None` for one without tokens.
    ends: Vec<Option<usize>>,
}

impl BranchTree {
    /// Adds a sequence and returns the number of its branch.
    pub fn add(&mut self, steps: &[Taken]) -> usize {
        let branch = self.ends.len();
        let mut at: Option<usize> = None;
        for (index, &taken) in steps.iter().enumerate() {
            let known =
                self.nodes.iter().position(|node| node.parent == at && node.taken.token == taken.token);
            let next = known.unwrap_or(self.nodes.len());
            if known.is_none() {
                let before = at.map_or(0.0, |at| self.nodes[at].running_logprob);
                self.nodes.push(Node {
                    parent: at,
                    taken,
                    length: index + 1,
                    running_logprob: before + taken.raw_logprob,
                    branches: Vec::new(),
                    children: Vec::new(),
                });
                if let Some(at) = at {
                    self.nodes[at].children.push(next);
                }
            }
            self.nodes[next].branches.push(branch);
            at = Some(next);
        }
        self.ends.push(at);
        branch
    }

    /// Every node, parents before their children.
    #[must_use]
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// How many branches were added.
    #[must_use]
    pub fn branches(&self) -> usize {
        self.ends.len()
    }

    /// The nodes of a branch, oldest first; `None` if there is no such branch.
    #[must_use]
    pub fn path(&self, branch: usize) -> Option<Vec<usize>> {
        let end = *self.ends.get(branch)?;
        let mut path: Vec<usize> = std::iter::successors(end, |&node| self.nodes[node].parent).collect();
        path.reverse();
        Some(path)
    }

    /// Where two branches part; `None` if one of them does not exist.
    #[must_use]
    pub fn compare(&self, a: usize, b: usize) -> Option<Parting> {
        let paths = [self.path(a)?, self.path(b)?];
        let shared = paths[0].iter().zip(&paths[1]).take_while(|(a, b)| a == b).count();
        let token = |node: &usize| self.nodes[*node].taken.token;
        let rest = paths.each_ref().map(|path| &path[shared..]);
        let endings = rest[0].iter().rev().zip(rest[1].iter().rev());
        let logprobs =
            paths.each_ref().map(|path| path.last().map_or(0.0, |&end| self.nodes[end].running_logprob));
        Some(Parting {
            shared,
            tokens: rest.map(|rest| rest.first().map(token)),
            choice_logprobs: rest.map(|rest| rest.first().map(|&node| self.nodes[node].taken.raw_logprob)),
            logprobs,
            logprobs_per_token: [0, 1].map(|side| logprobs[side] / paths[side].len().max(1) as f64),
            same_ending: endings.take_while(|(a, b)| token(a) == token(b)).count(),
        })
    }
}
