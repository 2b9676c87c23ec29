//! The device path in a browser: the steps of a session on it, and the twin suite and the
//! benchmark for a reader's own GPU.

use std::{fmt::Write as _, sync::Arc};

use js_sys::{Function, Promise, Reflect};
use serde_json::json;
use wasm_bindgen::{JsCast, JsValue, prelude::wasm_bindgen};
use wasm_bindgen_futures::JsFuture;

use super::{Session, Thrown, object, thrown};
use crate::gpu::{self, Adapter, Clock, Device, Failure, Policy, Task, bench, twin};

/// Time in a page or a worker.
#[derive(Debug, Clone, Copy)]
struct BrowserClock;

fn global(name: &str) -> JsValue {
    Reflect::get(&js_sys::global(), &name.into()).unwrap_or(JsValue::UNDEFINED)
}

impl Clock for BrowserClock {
    fn now(&self) -> f64 {
        let performance = global("performance");
        Reflect::get(&performance, &"now".into())
            .and_then(JsCast::dyn_into::<Function>)
            .and_then(|now| now.call0(&performance))
            .ok()
            .and_then(|now| now.as_f64())
            .unwrap_or_else(js_sys::Date::now)
    }

    fn sleep(&self, milliseconds: u32) -> Task {
        let promise = Promise::new(&mut |resolve, _| {
            if let Ok(timer) = global("setTimeout").dyn_into::<Function>() {
                // A browser without timers would wait for ever; there is none.
                let _ = timer.call2(&JsValue::UNDEFINED, &resolve, &milliseconds.into());
            }
        });
        Box::pin(async move {
            let _ = JsFuture::from(promise).await;
        })
    }

    fn spawn(&self, task: Task) {
        wasm_bindgen_futures::spawn_local(task);
    }
}

fn failed(failure: Failure) -> JsValue {
    thrown(failure.into())
}

/// Decides at each step whether a GPU or the CPU decodes it.
#[wasm_bindgen]
#[derive(Debug)]
pub struct Engine {
    pub(super) inner: gpu::Engine,
    adapter: Option<String>,
}

#[wasm_bindgen]
impl Engine {
    /// Looks for a GPU and measures it. With `required` there must be one, which may be software
    /// and decodes everything it can.
    pub async fn open(required: bool) -> Thrown<Self> {
        let policy = if required { Policy::Require } else { Policy::Try };
        let inner = gpu::Engine::new(policy, Arc::new(BrowserClock)).await.map_err(thrown)?;
        let adapter = inner.device().map(|device| device.adapter().to_string());
        Ok(Self { inner, adapter })
    }

    /// `{adapter, measured, why}`: the GPU, what it was measured to need, and why the CPU
    /// decodes; each a text or null.
    pub fn about(&self) -> Thrown<JsValue> {
        let mut measured = self.inner.measured().map(ToString::to_string);
        if let (Some(text), Some(times)) = (&mut measured, self.inner.head_times()) {
            let _ = write!(text, "; {times}");
        }
        object(&json!({
            "adapter": self.adapter,
            "measured": measured,
            "why": self.inner.why_cpu(),
        }))
    }

    /// Where everything since the last account was computed, for the logits and then for each
    /// stage: `[{stage, device, why, rows, of}]`.
    pub fn account(&mut self) -> Thrown<JsValue> {
        object(&self.inner.take_account().places)
    }
}

#[wasm_bindgen]
impl Session {
    /// As `step`, on a GPU where the engine chooses it: the same token.
    #[wasm_bindgen(js_name = stepOn)]
    pub async fn step_on(&mut self, engine: &mut Engine) -> Thrown<JsValue> {
        object(&self.inner.step_on(&mut engine.inner).await.map_err(thrown)?)
    }

    /// As `preview`, the logits computed on a GPU where the engine chooses it.
    #[wasm_bindgen(js_name = previewOn)]
    pub async fn preview_on(&mut self, engine: &mut Engine) -> Thrown<JsValue> {
        let next = self.length();
        object(&self.inner.trace_on(&mut engine.inner, next).await.map_err(thrown)?)
    }

    /// Where the logits and each stage of the next step would be computed:
    /// `{step, logits, stages}`, each place `{stage, device, why}`.
    pub async fn places(&mut self, engine: &mut Engine) -> Thrown<JsValue> {
        object(&self.inner.places(&mut engine.inner).await.map_err(thrown)?)
    }
}

/// The adapter that the browser offers, ready to be held to the CPU's integers.
#[wasm_bindgen]
#[derive(Debug)]
pub struct Gpu {
    device: Device,
}

#[wasm_bindgen]
impl Gpu {
    /// Asks the browser for a device.
    pub async fn open() -> Thrown<Self> {
        let device = Device::acquire(Arc::new(BrowserClock)).await.map_err(failed)?;
        Ok(Self { device })
    }

    /// `{name, backend, software}`.
    pub fn adapter(&self) -> Thrown<JsValue> {
        let adapter: &Adapter = self.device.adapter();
        object(adapter)
    }

    /// Runs the twin suite; `progress` is called with a line of text now and then.
    pub async fn check(&mut self, full: bool, progress: Function) -> Thrown<JsValue> {
        let extent = if full { twin::Extent::Full } else { twin::Extent::Quick };
        let mut tell = |line: String| {
            // What the page does with a line is its own affair.
            let _ = progress.call1(&JsValue::UNDEFINED, &line.into());
        };
        let report = twin::run(&mut self.device, extent, &mut tell).await.map_err(failed)?;
        let passed = report.passed();
        let shown = object(&report)?;
        Reflect::set(&shown, &"passed".into(), &passed.into())?;
        Ok(shown)
    }

    /// Measures our path, a full sort and the CPU; `progress` gets each line as an object.
    pub async fn bench(
        &mut self,
        vocabularies: Vec<u32>,
        batches: Vec<u32>,
        progress: Function,
    ) -> Thrown<JsValue> {
        let sizes = |all: Vec<u32>| all.into_iter().map(|size| size as usize).collect::<Vec<_>>();
        let mut tell = |line: &bench::Line| {
            if let Ok(line) = object(line) {
                let _ = progress.call1(&JsValue::UNDEFINED, &line);
            }
        };
        let lines = bench::run(&mut self.device, &sizes(vocabularies), &sizes(batches), &mut tell)
            .await
            .map_err(failed)?;
        object(&lines)
    }
}
