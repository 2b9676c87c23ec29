//! A date, as chat templates write it.
//!
//! Templates ask for the date of the day (`strftime_now`). Here it is an input like any other, so
//! that the same inputs give the same prompt tomorrow.

use std::str::FromStr;

use crate::{Error, ErrorCode, error::Result};

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
const DAYS: [&str; 7] = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];

/// A day of the Gregorian calendar, with a time of the day if it matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Date {
    year: u32,
    /// 1 to 12.
    month: u32,
    /// 1 to 31.
    day: u32,
    /// Hour, minute and second.
    time: Option<[u32; 3]>,
}

impl FromStr for Date {
    type Err = Error;

    /// Reads `2026-11-30`, or with a time `2026-11-30T09:05:07`.
    ///
    /// # Errors
    /// `out_of_range` for anything else, and for days that do not exist.
    ///
    /// # Examples
    /// ```
    /// use logitscope::model::chat::Date;
    ///
    /// let date: Date = "2024-02-29".parse()?;
    /// assert_eq!(date.format("%A, %d %b %Y")?, "Thursday, 29 Feb 2024");
    /// assert!("2023-02-29".parse::<Date>().is_err());
    /// # Ok::<(), logitscope::Error>(())
    /// ```
    fn from_str(text: &str) -> Result<Self> {
        let refused = || {
            let message =
                format!("the date is {text:?}, not a day such as 2026-11-30, or a time, 2026-11-30T09:05:07");
            Error::new(ErrorCode::OutOfRange, message).param("date")
        };
        let (day, time) = match text.split_once('T') {
            Some((day, time)) => (day, Some(numbers(time, ':', [2, 2, 2]).ok_or_else(refused)?)),
            None => (text, None),
        };
        let [year, month, day] = numbers(day, '-', [4, 2, 2]).ok_or_else(refused)?;
        let date = Self { year, month, day, time };
        let time_exists = time.is_none_or(|[hour, minute, second]| hour < 24 && minute < 60 && second < 60);
        let day_exists = (1..=12).contains(&month) && (1..=date.days_of_month()).contains(&day);
        if year > 0 && day_exists && time_exists { Ok(date) } else { Err(refused()) }
    }
}

/// Three numbers of so many digits.
fn numbers(text: &str, between: char, digits: [usize; 3]) -> Option<[u32; 3]> {
    let mut parts = text.split(between);
    let numbers = digits.map(|digits| {
        let part =
            parts.next().filter(|part| part.len() == digits && part.bytes().all(|b| b.is_ascii_digit()));
        part.and_then(|part| part.parse().ok())
    });
    if parts.next().is_some() {
        return None;
    }
    Some([numbers[0]?, numbers[1]?, numbers[2]?])
}

impl Date {
    fn is_leap(self) -> bool {
        self.year.is_multiple_of(4) && (!self.year.is_multiple_of(100) || self.year.is_multiple_of(400))
    }

    fn days_of_month(self) -> u32 {
        match self.month {
            2 => 28 + u32::from(self.is_leap()),
            4 | 6 | 9 | 11 => 30,
            _ => 31,
        }
    }

    /// The day of the year, from 1.
    fn day_of_year(self) -> u32 {
        (1..self.month).map(|month| Self { month, ..self }.days_of_month()).sum::<u32>() + self.day
    }

    /// Days after Monday.
    fn day_of_week(self) -> u32 {
        let before = self.year - 1;
        // 1 January of the year 1 was a Monday.
        (before * 365 + before / 4 - before / 100 + before / 400 + self.day_of_year() - 1) % 7
    }

    /// The date as C's and Python's `strftime` writes it in English.
    ///
    /// # Errors
    /// `bad_input` for a code that is not implemented, and for a time that was not given.
    pub fn format(self, format: &str) -> Result<String> {
        let mut text = String::new();
        let mut rest = format.chars();
        while let Some(c) = rest.next() {
            if c != '%' {
                text.push(c);
                continue;
            }
            let code = rest.next().unwrap_or('%');
            text.push_str(&self.code(code)?);
        }
        Ok(text)
    }

    fn code(self, code: char) -> Result<String> {
        let month = MONTHS[self.month as usize - 1];
        let day = DAYS[self.day_of_week() as usize];
        let [hour, minute, second] = match (code, self.time) {
            ('H' | 'I' | 'M' | 'S' | 'p' | 'T' | 'X' | 'c', None) => {
                let message = format!("%{code} asks for a time, and the date has none");
                return Err(Error::new(ErrorCode::BadInput, message).param("date"));
            }
            (_, time) => time.unwrap_or_default(),
        };
        Ok(match code {
            'Y' => format!("{:04}", self.year),
            'y' => format!("{:02}", self.year % 100),
            'm' => format!("{:02}", self.month),
            'd' => format!("{:02}", self.day),
            'e' => format!("{:2}", self.day),
            'j' => format!("{:03}", self.day_of_year()),
            'B' => month.to_owned(),
            'b' | 'h' => month[..3].to_owned(),
            'A' => day.to_owned(),
            'a' => day[..3].to_owned(),
            'F' => self.format("%Y-%m-%d")?,
            'H' => format!("{hour:02}"),
            'I' => format!("{:02}", (hour + 11) % 12 + 1),
            'M' => format!("{minute:02}"),
            'S' => format!("{second:02}"),
            'p' => if hour < 12 { "AM" } else { "PM" }.to_owned(),
            'T' => self.format("%H:%M:%S")?,
            '%' => "%".to_owned(),
            _ => {
                let message = format!("%{code} in a format of dates is not supported");
                return Err(Error::new(ErrorCode::BadInput, message).param("date"));
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn format(date: &str, format: &str) -> Result<String> {
        date.parse::<Date>()?.format(format)
    }

    /// Expected: Python's `datetime.strftime`.
    #[test]
    fn dates_are_written_as_python_does() {
        let every = "%Y %y %m %d %e %j %B %b %A %a %F %H %I %M %S %p %T %%";
        for (date, text) in [
            (
                "2024-07-03T09:05:07",
                "2024 24 07 03  3 185 July Jul Wednesday Wed 2024-07-03 09 09 05 07 AM 09:05:07 %",
            ),
            (
                "2000-02-29T00:00:00",
                "2000 00 02 29 29 060 February Feb Tuesday Tue 2000-02-29 00 12 00 00 AM 00:00:00 %",
            ),
            (
                "2100-12-31T23:59:59",
                "2100 00 12 31 31 365 December Dec Friday Fri 2100-12-31 23 11 59 59 PM 23:59:59 %",
            ),
            (
                "1970-01-01T12:30:00",
                "1970 70 01 01  1 001 January Jan Thursday Thu 1970-01-01 12 12 30 00 PM 12:30:00 %",
            ),
        ] {
            assert_eq!(format(date, every).unwrap(), text);
        }
        assert_eq!(format("2026-11-30", "%d %b %Y").unwrap(), "30 Nov 2026");
    }

    #[test]
    fn what_is_no_date_is_refused() {
        for date in [
            "",
            "today",
            "2026-13-01",
            "2100-02-29",
            "2026-04-31",
            "2026-1-1",
            "2026-01-01-01",
            "2026-01-01T24:00:00",
            "2026-01-01T",
            "2026-01-01 10:00:00",
            "0000-01-01",
            "+026-01-01",
        ] {
            let error = date.parse::<Date>().unwrap_err();
            assert_eq!((error.code, error.param.as_deref()), (ErrorCode::OutOfRange, Some("date")), "{date}");
        }
        assert!(format("2026-11-30", "%H").unwrap_err().message.contains("%H asks for a time"));
        assert!(format("2026-11-30", "%Q").unwrap_err().message.contains("%Q"));
    }
}
