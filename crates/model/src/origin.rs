//! Whose code a frame is.

/// Whose code a frame belongs to, judged from its file and function names alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Origin {
    /// Python code that is neither installed as a package nor part of Python.
    User,
    /// Python code in an installed package or the standard library.
    Library,
    /// Code with no file of its own (`<string>`, `<frozen …>`, `<eval_with_key>`).
    Generated,
    /// C++ or another native language.
    Native,
}

impl Origin {
    /// Judges a frame by its file and function name.
    pub fn of(file: &str, name: &str) -> Self {
        if file.starts_with('<') || file == "none" || file.contains("/torchinductor_") {
            return Self::Generated;
        }
        let ending = file.rsplit_once('.').map_or("", |(_, ending)| ending);
        let is_python = matches!(ending, "py" | "pyx" | "ipynb");
        if !is_python {
            // IPython names the cells of a notebook `/tmp/ipykernel_123/456.py`, which is covered above; files
            // without a Python ending are scripts only if nothing about them looks native.
            let native_file = file.is_empty()
                || file.starts_with("??")
                || [".cpp", ".cc", ".cxx", ".c", ".h", ".hpp", ".cu", ".cuh", ".so", ".inl", ".S"]
                    .iter()
                    .any(|ending| file.ends_with(ending))
                || file.contains(".so.");
            if native_file || name.contains("::") || name.contains('(') || name.starts_with("_Py") {
                return Self::Native;
            }
        }
        if in_python_library(file) { Self::Library } else { Self::User }
    }
}

/// Installed packages, and the standard library (`…/lib/python3.12/…`, on Windows `…\Lib\…`).
fn in_python_library(file: &str) -> bool {
    let has = |needle: &str| file.contains(needle);
    if has("site-packages") || has("dist-packages") {
        return true;
    }
    if let Some(at) = file.find("/lib/python").or_else(|| file.find("/lib64/python")) {
        // `lib/python3.12/…` but not a project folder that merely begins with "python".
        let rest = file.get(at..).unwrap_or("");
        let version = rest.split("python").nth(1).unwrap_or("");
        return version.starts_with(|c: char| c.is_ascii_digit());
    }
    has("\\Lib\\")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_told_apart() {
        let check =
            |file: &str, name: &str, want: Origin| assert_eq!(Origin::of(file, name), want, "{file} {name}");
        check("/srv/job/train.py", "main", Origin::User);
        check("train.py", "<module>", Origin::User);
        check("/home/u/pythonic/lib/pythonic/model.py", "f", Origin::User);
        check("/tmp/ipykernel_17/123.py", "<module>", Origin::User);
        check("/opt/venv/lib/python3.12/site-packages/torch/nn/modules/conv.py", "forward", Origin::Library);
        check("/usr/lib/python3/dist-packages/torch/x.py", "f", Origin::Library);
        check("/root/.pyenv/versions/3.11.7/lib/python3.11/contextlib.py", "inner", Origin::Library);
        check("<string>", "f", Origin::Generated);
        check("<frozen runpy>", "_run_code", Origin::Generated);
        check("??", "at::native::empty_cuda(c10::IntArrayRef)", Origin::Native);
        check("CUDACachingAllocator.cpp", "c10::cuda::malloc", Origin::Native);
        check("", "", Origin::Native);
        check("/usr/bin/trainer", "main", Origin::User);
    }
}
