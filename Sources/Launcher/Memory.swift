internal import Glibc

/// Zeroes and empties a buffer that held a secret, in a way that the optimizer keeps.
func erase(_ bytes: inout [UInt8]) {
    unsafe bytes.withUnsafeMutableBytes { buffer in
        guard let base = buffer.baseAddress else { return }
        unsafe explicit_bzero(base, buffer.count)
    }
    bytes.removeAll()
}

/// The system's words for an error number.
func reason(_ code: Int32) -> String {
    unsafe String(cString: strerror(code))
}
