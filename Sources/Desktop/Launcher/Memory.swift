internal import Glibc

/// Zeroes and empties a buffer that held a secret. The optimizer does not remove this.
func erase(_ bytes: inout [UInt8]) {
    unsafe bytes.withUnsafeMutableBytes { buffer in
        guard let base = buffer.baseAddress else { return }
        unsafe explicit_bzero(base, buffer.count)
    }
    bytes.removeAll()
}

/// The system's text for an errno.
func reason(_ code: Int32) -> String {
    unsafe String(cString: strerror(code))
}
