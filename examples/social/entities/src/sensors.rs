//! Readings of sensors, and their roll-ups by hour and day.

use keys::{key_template::KeyField, number::Decimal};

use crate::ids::SensorId;

keys::entity! {
    /// A reading of a sensor, in the sensor's collection of the day.
    ground Reading "E-23" {
        key ReadingKey("SENSOR#{SensorId}#{Day}", "{At}") {
            /// The sensor.
            sensor_id: SensorId = "SensorId",
            /// The day of `at`, such as `2024-01-15`.
            day: String = "Day",
            /// When it was measured, ISO 8601 UTC in milliseconds.
            at: String = "At",
        }
        attributes {
            /// The measured value.
            value: Option<Decimal> = "Value",
            /// When the item was first written, ISO 8601 UTC in milliseconds.
            created_at: Option<String> = "CreatedAt",
            /// When the item was last written, ISO 8601 UTC in milliseconds.
            updated_at: Option<String> = "UpdatedAt",
        }
        derived {}
    }
}

keys::entity! {
    /// The roll-up of a sensor's readings in an hour or a day, removed readings included.
    derived Rollup "E-24" {
        key RollupKey("SENSOR#{SensorId}", "{Grain}#{Bucket}") {
            /// The sensor.
            sensor_id: SensorId = "SensorId",
            /// Hour or day.
            grain: Grain = "Grain",
            /// The hour, such as `2024-01-15T10`, or the day, such as `2024-01-15`.
            bucket: String = "Bucket",
        }
        attributes {}
        derived {
            /// Number of readings.
            count: Option<i64> = "Count",
            /// Their sum.
            sum: Option<Decimal> = "Sum",
            /// The least value.
            min: Option<Decimal> = "Min",
            /// The greatest value.
            max: Option<Decimal> = "Max",
        }
    }
}

/// The length of a [`Rollup`]'s bucket. Its text is stored, so it is stable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Grain {
    /// An hour: `HOUR`.
    #[default]
    Hour,
    /// A day: `DAY`.
    Day,
}

impl KeyField for Grain {
    fn to_text(&self) -> String {
        match self {
            Self::Hour => "HOUR".to_owned(),
            Self::Day => "DAY".to_owned(),
        }
    }

    fn from_text(text: &str) -> Option<Self> {
        [Self::Hour, Self::Day].into_iter().find(|grain| grain.to_text() == text)
    }
}

#[cfg(test)]
mod tests {
    use keys::{entity::Entity, key::Key};

    use super::*;

    #[test]
    fn a_key_of_another_length_of_time_is_no_rollups() {
        let grain = |sk: &str| Rollup::parse_key(&Key::new("SENSOR#s", sk)).map(|key| key.grain);
        assert_eq!(grain("HOUR#2024-01-15T10"), Some(Grain::Hour));
        assert_eq!(grain("DAY#2024-01-15"), Some(Grain::Day));
        assert_eq!(grain("YEAR#2024"), None);
    }
}
