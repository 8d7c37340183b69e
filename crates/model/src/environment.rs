//! In what surroundings a program was recorded.

/// What the recorder wrote down of the program and the machine. What it did not write is empty or none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Environment {
    /// The command, word by word.
    pub command: Vec<String>,
    /// When the program was started, µs since 1970 UTC.
    pub started_us: Option<i64>,
    /// The rank of the process in a distributed job.
    pub rank: Option<u32>,
    /// How many processes the job has.
    pub world_size: Option<u32>,
    /// The release of torch.
    pub torch: Option<String>,
    /// The release of CUDA that torch was built with.
    pub cuda: Option<String>,
    /// The driver's version.
    pub driver: Option<String>,
    /// The names of the devices, by number.
    pub gpus: Vec<String>,
    /// Variables that set the allocator, by name: `PYTORCH_CUDA_ALLOC_CONF`.
    pub settings: Vec<(String, String)>,
    /// The version of the recorder.
    pub recorder: Option<String>,
}

impl Environment {
    /// The text that sets the allocator, by the variable that wins where several are set.
    pub fn allocator_conf(&self) -> Option<(&str, &str)> {
        // Newer releases read the general name first.
        ["PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_HIP_ALLOC_CONF"].iter().find_map(
            |wanted| {
                let (name, conf) =
                    self.settings.iter().find(|(name, conf)| name == wanted && !conf.is_empty())?;
                Some((name.as_str(), conf.as_str()))
            },
        )
    }
}
