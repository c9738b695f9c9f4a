internal import Glibc

extension [UInt8] {
    /// Overwrites the bytes. Copies of the array, and the old storage of an array that has grown, are not erased:
    /// reserve the capacity first and do not copy.
    package mutating func erase() {
        unsafe withUnsafeMutableBytes { buffer in
            guard let start = buffer.baseAddress else { return }
            unsafe explicit_bzero(start, buffer.count)
        }
    }
}
