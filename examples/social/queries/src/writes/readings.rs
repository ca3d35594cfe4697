//! Readings of sensors.
//!
//! A reading is known by its sensor and its time, and is written once, because an addition to a roll-up is never
//! undone.

use derive::write::Write;
use futures::future::try_join_all;
use keys::number::Decimal;
use store::Store;

use crate::writes::{
    Sent,
    draft::{decimal, number, texts},
    time_text,
};
use crate::{
    Queries,
    write_error::{READINGS_MAX, WriteError},
};

/// Length of a day's text, such as `2024-01-15`.
const DAY_LEN: usize = 10;

/// A reading.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewReading {
    /// The sensor.
    pub sensor_id: String,
    /// When it was measured, in milliseconds since the epoch.
    pub at_ms: u64,
    /// The measured value.
    pub value: Decimal,
}

impl<S: Store> Queries<S> {
    /// WP-12: adds a reading; returns true if it did not exist. The same reading again changes nothing.
    ///
    /// # Errors
    ///
    /// [`WriteError::AlreadyExists`] for another value of the same sensor and time.
    pub async fn add_reading(&self, reading: &NewReading) -> Result<bool, WriteError> {
        self.write_reading(reading, self.reading(reading)?).await
    }

    /// WP-12: adds up to 25 readings at the same time, each by its own write. Returns the number of new ones.
    ///
    /// It uses no transaction, which would cost twice as much: if one reading is refused, others may have been added,
    /// and the caller can send the batch again.
    ///
    /// # Errors
    ///
    /// [`WriteError::TooManyReadings`]; else the first refusal, as for [`add_reading`](Self::add_reading).
    pub async fn add_readings(&self, readings: &[NewReading]) -> Result<usize, WriteError> {
        if readings.len() > READINGS_MAX {
            return Err(WriteError::TooManyReadings { n_readings: readings.len() });
        }
        // All are made before the first is sent, so that an invalid one stops the batch.
        let made = readings.iter().map(|reading| Ok((reading, self.reading(reading)?)));
        let made = made.collect::<Result<Vec<_>, WriteError>>()?;
        let added = try_join_all(made.into_iter().map(|(reading, write)| self.write_reading(reading, write))).await?;
        Ok(added.into_iter().filter(|added| *added).count())
    }

    fn reading(&self, reading: &NewReading) -> Result<Write, WriteError> {
        let (now, at) = (self.now()?, time_text(reading.at_ms)?);
        let day: String = at.chars().take(DAY_LEN).collect();
        let key = texts([("SensorId", reading.sensor_id.as_str()), ("Day", &day), ("At", &at)]);
        self.creation("Reading", &now, key.chain([("Value", number(reading.value.clone()))]))
    }

    async fn write_reading(&self, reading: &NewReading, write: Write) -> Result<bool, WriteError> {
        let mut attempts = self.attempts();
        loop {
            if attempts.send(std::slice::from_ref(&write)).await? == Sent::Done {
                return Ok(true);
            }
            match attempts.item(&write.key).await? {
                Some(stored) if decimal(&stored, "Value").as_ref() == Some(&reading.value) => return Ok(false),
                Some(_) => return Err(WriteError::AlreadyExists { item: write.key }),
                None => attempts.again(&write.key).await?,
            }
        }
    }
}
