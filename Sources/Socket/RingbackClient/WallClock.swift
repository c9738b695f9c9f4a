import Glibc

enum WallClock {
    /// Unix seconds.
    static func seconds() -> Int { time(nil) }
}
