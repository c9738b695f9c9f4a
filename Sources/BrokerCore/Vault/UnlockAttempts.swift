/// The attempts to open the vault that callers ask for: one at a time, since each may derive a key from a passphrase, which
/// takes the processor a good part of a second. An attempt of a program that was wrong lately waits for those of
/// programs that were not, so that a program which guesses, or starts many processes that do, keeps no other one out.
struct UnlockAttempts: Sendable {
    /// What a caller has in common with other processes of the same program.
    typealias Groups = Set<String>

    private struct Waiter: Sendable {
        let number: Int
        let groups: Groups
        let turn: Promise<Void>
    }

    /// How long a failed attempt counts.
    private static let window: Duration = .seconds(60)

    private var isRunning = false
    private var waiting: [Waiter] = []
    private var count = 0
    private var failures: [String: [BootInstant]] = [:]

    /// Begins an attempt. Nil if its turn is now; otherwise its number, and what to wait for.
    mutating func enter(_ groups: Groups) -> (number: Int, turn: Promise<Void>)? {
        guard isRunning else {
            isRunning = true
            return nil
        }
        count += 1
        let waiter = Waiter(number: count, groups: groups, turn: Promise())
        waiting.append(waiter)
        return (waiter.number, waiter.turn)
    }

    /// The caller goes away. False if its turn has come already.
    mutating func giveUp(_ number: Int) -> Bool {
        guard let index = waiting.firstIndex(where: { $0.number == number }) else { return false }
        waiting.remove(at: index)
        return true
    }

    mutating func failed(_ groups: Groups, at now: BootInstant) {
        for group in groups { failures[group, default: []].append(now) }
    }

    /// An attempt has ended: the next one begins. It is the one with the fewest failures lately, and of those the first.
    mutating func ended(at now: BootInstant) {
        failures = failures.mapValues { $0.filter { $0 > now - UnlockAttempts.window } }.filter { !$0.value.isEmpty }
        let rank = { [failures] (waiter: Waiter) in waiter.groups.map { failures[$0]?.count ?? 0 }.max() ?? 0 }
        guard let next = waiting.min(by: { (rank($0), $0.number) < (rank($1), $1.number) }) else {
            isRunning = false
            return
        }
        waiting.removeAll { $0.number == next.number }
        next.turn.fulfil(())
    }
}
