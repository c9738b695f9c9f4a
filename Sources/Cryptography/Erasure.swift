internal import Glibc

extension [UInt8] {
    /// Overwrites the bytes. An array that was copied or grown has left other copies: reserve, and do neither.
    package mutating func erase() {
        unsafe withUnsafeMutableBytes { buffer in
            guard let start = buffer.baseAddress else { return }
            unsafe explicit_bzero(start, buffer.count)
        }
    }
}
