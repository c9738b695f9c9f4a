internal import Glibc

/// A file descriptor with one owner. It is closed when this value is destroyed.
struct Descriptor: ~Copyable {
    let number: Int32

    init(_ number: Int32) {
        self.number = number
    }

    deinit { close(number) }

    /// Returns the descriptor without closing it.
    consuming func release() -> Int32 {
        let number = number
        discard self
        return number
    }
}
