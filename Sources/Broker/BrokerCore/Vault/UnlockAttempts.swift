/// A process that asks to open the vault.
public struct UnlockCaller: Sendable {
    let process: Int32
    let groups: Set<String>
    let sessionStart: UInt64?

    /// - Parameters:
    ///   - process: its process id. After five failed attempts in a minute it gets `tooManyAttempts`.
    ///   - groups: what it has in common with other processes of the same program, such as its session.
    ///   - sessionStart: when its session began, in clock ticks since the machine started; nil if that is not known.
    public init(process: Int32 = 0, groups: Set<String> = [], sessionStart: UInt64? = nil) {
        self.process = process
        self.groups = groups.union(["process \(process)"])
        self.sessionStart = sessionStart
    }
}

/// The attempts to open the vault that callers ask for: one at a time, since each may derive a key from a passphrase,
/// which takes the processor a good part of a second. An attempt of a program with recent failures waits for the
/// attempts of programs without any. So a program that guesses passphrases, or starts many processes that do, cannot
/// keep other programs out. A program that starts a session for each guess waits for the sessions that began before it.
struct UnlockAttempts: Sendable {
    private struct Waiter: Sendable {
        let number: Int
        let caller: UnlockCaller
        let turn: Promise<Void>
    }

    /// How long a failed attempt counts.
    private static let window: Duration = .seconds(60)

    private var isRunning = false
    private var waiting: [Waiter] = []
    private var count = 0
    private var failures: [String: [BootInstant]] = [:]

    /// Begins an attempt. Nil if its turn is now; otherwise its number, and what to wait for.
    mutating func enter(_ caller: UnlockCaller) -> (number: Int, turn: Promise<Void>)? {
        guard isRunning else {
            isRunning = true
            return nil
        }
        count += 1
        let waiter = Waiter(number: count, caller: caller, turn: Promise())
        waiting.append(waiter)
        return (waiter.number, waiter.turn)
    }

    /// Removes a caller that has disconnected. False if its turn has come already.
    mutating func giveUp(_ number: Int) -> Bool {
        guard let index = waiting.firstIndex(where: { $0.number == number }) else { return false }
        waiting.remove(at: index)
        return true
    }

    mutating func failed(_ caller: UnlockCaller, at now: BootInstant) {
        for group in caller.groups { failures[group, default: []].append(now) }
    }

    /// An attempt has ended, and the next one begins: that of the caller with the fewest recent failures. Among equals,
    /// the caller with the oldest session is next, and among these the first to ask.
    mutating func ended(at now: BootInstant) {
        failures = failures.mapValues { $0.filter { $0 > now - UnlockAttempts.window } }.filter { !$0.value.isEmpty }
        let rank = { [failures] (waiter: Waiter) in
            let failed = waiter.caller.groups.map { failures[$0]?.count ?? 0 }.max() ?? 0
            return (failed, waiter.caller.sessionStart ?? .max, waiter.number)
        }
        guard let next = waiting.min(by: { rank($0) < rank($1) }) else {
            isRunning = false
            return
        }
        waiting.removeAll { $0.number == next.number }
        next.turn.fulfil(())
    }
}
