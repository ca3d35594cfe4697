//! Readings of sensors, single and in batches, and changes of earlier readings.

use entities::{
    ids::SensorId,
    sensors::{Reading, ReadingKey},
};
use keys::error::EntityError;
use queries::writes::readings::NewReading;
use rand::Rng as _;

use super::{
    Application,
    act::{Act, Plain},
    foreign::put,
};

/// Number of sensors.
const SENSORS: u32 = 12;

/// Time between two actions of a sensor, in milliseconds: large enough to reach many hours and days.
const STEP_MS: u64 = 60_000;

/// Length of a day's text, such as `2030-01-01`.
const DAY_LEN: usize = 10;

/// An earlier reading.
#[derive(Clone, Debug)]
pub(super) struct Taken {
    sensor_id: SensorId,
    at_ms: u64,
}

impl Application {
    /// The next action; the numbers are of 10.
    pub(super) fn of_readings(&mut self) -> Result<(String, Act), EntityError> {
        let sensor_id = SensorId::from(format!("sensor-{}", self.chance.random_range(0..SENSORS)));
        let n = match self.chance.random_range(0..10) {
            0..=5 => 1,
            6..=8 => self.chance.random_range(2..=12),
            _ => match self.any(|app| &app.readings) {
                Some(taken) => return self.correct(taken),
                None => 1,
            },
        };
        let mut readings = Vec::new();
        for at in 0..n {
            let at_ms = super::BEGIN_MS + self.n_actions * STEP_MS + at;
            let value = self.chance.random_range(-20_i64..40).into();
            readings.push(NewReading { sensor_id: sensor_id.clone(), at_ms, value });
            self.readings.push(Taken { sensor_id: sensor_id.clone(), at_ms });
        }
        Ok((sensor_id.as_str().to_owned(), Act::Readings(readings)))
    }

    /// Another client corrects or removes a reading, which changes no roll-up.
    fn correct(&mut self, Taken { sensor_id, at_ms }: Taken) -> Result<(String, Act), EntityError> {
        let at = super::time_text(at_ms);
        let reading = Reading {
            key: ReadingKey { sensor_id: sensor_id.clone(), day: at.chars().take(DAY_LEN).collect(), at },
            value: Some(self.chance.random_range(-20_i64..40).into()),
            created_at: Some(self.now()),
            updated_at: Some(self.now()),
        };
        let plain = match put(&reading)? {
            Plain::Put(key, _) if self.happens(1, 3) => Plain::Delete(key),
            put => put,
        };
        Ok((sensor_id.as_str().to_owned(), Act::Foreign(vec![plain])))
    }
}
