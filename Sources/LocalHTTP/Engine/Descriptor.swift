internal import Glibc

/// A file descriptor with one owner. It is closed when the owner goes away.
struct Descriptor: ~Copyable {
    let number: Int32

    init(_ number: Int32) {
        self.number = number
    }

    deinit { close(number) }

    /// Gives the descriptor away.
    consuming func release() -> Int32 {
        let number = number
        discard self
        return number
    }
}
