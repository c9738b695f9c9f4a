import Glibc

/// What one session costs the schedule: it is put at an instant, moved by a refresh, and taken out when it is due. Compiled
/// together with the scheduler itself. For each number of sessions one line of "name value" pairs, microseconds, medians.
@main struct AgendaBenchmark {
    static let rounds = 11

    static func main() {
        for size in [1_000, 10_000, 100_000] {
            var placed: [Double] = []
            var moved: [Double] = []
            var taken: [Double] = []
            for _ in 0..<rounds {
                let keys = (0..<size).map { "account-\($0)" }
                var scheduler = Scheduler<String>()
                placed.append(
                    microseconds(size) { for key in keys { scheduler.set(key, at: instant()) } })
                moved.append(
                    microseconds(size) { for key in keys { scheduler.set(key, at: instant()) } })
                taken.append(microseconds(size) { while scheduler.popDue(at: .never) != nil {} })
            }
            print("sessions \(size) placed \(median(placed)) moved \(median(moved)) taken \(median(taken))")
        }
    }

    /// Within an hour.
    static func instant() -> BootInstant { BootInstant(milliseconds: .random(in: 0..<3_600_000)) }

    static func median(_ values: [Double]) -> Double { values.sorted()[values.count / 2] }

    /// Microseconds of each of so many.
    static func microseconds(_ count: Int, _ body: () -> Void) -> Double {
        let start = now()
        body()
        return (now() - start) * 1e6 / Double(count)
    }

    static func now() -> Double {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
    }
}
