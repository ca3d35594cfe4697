use mimalloc::MiMalloc;

/// The system's allocator took a quarter of a fan-out's time, because the database and the SDK allocate for each value
/// of an item.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

/// Peak memory so far, in MB of 1,048,576 bytes; `None` if the system does not report it. Only Linux does.
pub(crate) fn peak_mb() -> Option<f64> {
    high_water_mb(&std::fs::read_to_string("/proc/self/status").ok()?)
}

/// Reads the peak from the text of a process's status, in MB with one decimal.
fn high_water_mb(status: &str) -> Option<f64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kilobytes: u32 = line.trim().strip_suffix(" kB")?.trim().parse().ok()?;
    Some((f64::from(kilobytes) / 1024.0 * 10.0).round() / 10.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_high_water_mark_is_read_from_the_status() {
        let status = "Name:\tripple\nVmPeak:\t  999999 kB\nVmHWM:\t   65664 kB\nVmRSS:\t   60000 kB\n";
        assert_eq!(high_water_mb(status), Some(64.1));
        for none in ["", "VmRSS:\t 1 kB", "VmHWM:\t many kB", "VmHWM:\t 12"] {
            assert_eq!(high_water_mb(none), None, "{none}");
        }
    }
}
