//! A server and everything that it starts, on Windows: a job, which the system ends when its last handle
//! is closed. One contains this process and all that it starts, and ends with it in any way; each server
//! has its own in it, to be ended before.

use std::{
    io,
    os::windows::io::{AsRawHandle, FromRawHandle, OwnedHandle, RawHandle},
    process::Child,
    ptr::null,
};

use parking_lot::Mutex;
use windows_sys::Win32::System::{
    JobObjects::{
        AssignProcessToJobObject, CreateJobObjectW, JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE,
        JOBOBJECT_EXTENDED_LIMIT_INFORMATION, JobObjectExtendedLimitInformation,
        SetInformationJobObject,
    },
    Threading::GetCurrentProcess,
};

/// Size of the struct of limits, in bytes.
const LIMITS_SIZE: u32 = size_of::<JOBOBJECT_EXTENDED_LIMIT_INFORMATION>() as u32;

/// Ends its processes when it is dropped.
#[derive(Debug)]
pub(crate) struct Job(OwnedHandle);

impl Job {
    /// Creates a job for a process.
    pub(crate) fn of(child: &Child) -> io::Result<Self> {
        let job = Self::new()?;
        job.add(child.as_raw_handle())?;
        Ok(job)
    }

    #[expect(
        unsafe_code,
        reason = "the crates for jobs bring a second binding of Windows"
    )]
    fn new() -> io::Result<Self> {
        let mut limits = JOBOBJECT_EXTENDED_LIMIT_INFORMATION::default();
        limits.BasicLimitInformation.LimitFlags = JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE;
        let limits = (&raw const limits).cast();
        // SAFETY: the handle of a new job has no other owner. `limits` is the struct that this kind of
        // information takes, with its size.
        unsafe {
            let handle = CreateJobObjectW(null(), null());
            if handle.is_null() {
                return Err(io::Error::last_os_error());
            }
            let job = Self(OwnedHandle::from_raw_handle(handle));
            let kind = JobObjectExtendedLimitInformation;
            if SetInformationJobObject(handle, kind, limits, LIMITS_SIZE) == 0 {
                return Err(io::Error::last_os_error());
            }
            Ok(job)
        }
    }

    #[expect(unsafe_code, reason = "as above")]
    fn add(&self, process: RawHandle) -> io::Result<()> {
        // SAFETY: both handles are open.
        if unsafe { AssignProcessToJobObject(self.0.as_raw_handle(), process) } == 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(())
    }
}

/// Puts this process in a job, in which all processes are that it starts from now on.
#[expect(unsafe_code, reason = "as above")]
pub(crate) fn enter() -> io::Result<()> {
    static OWN: Mutex<Option<Job>> = Mutex::new(None);
    let mut own = OWN.lock();
    if own.is_none() {
        let job = Job::new()?;
        // SAFETY: the handle of the own process has no condition.
        job.add(unsafe { GetCurrentProcess() })?;
        *own = Some(job);
    }
    Ok(())
}
