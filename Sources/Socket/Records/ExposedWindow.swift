/// Limits how many programs at a restricted socket the audit log distinguishes, for each socket and uid. Attack: a
/// program that starts a process for each request, or requests another scope each time, could fill the log. Beyond the
/// limit uses are counted together.
struct ExposedWindow {
    struct Place: Hashable {
        let socket: String
        let uid: UInt32
    }
    private struct Entry: Hashable {
        let pid: Int32
        let use: AuditUse
    }
    /// The start of the window in Unix seconds.
    private var start: Int
    private var entries: Set<Entry> = []

    /// The number of different pairs of process and use in one window.
    static let capacity = 16
    /// The length of a window in seconds.
    static let length = 60

    init(at now: Int) { start = now }

    /// True if this use of this process is counted on its own.
    mutating func countsSeparately(_ caller: AuditCaller, _ use: AuditUse, at now: Int) -> Bool {
        // A new window also begins if the clock was set back.
        if now < start || now - start >= ExposedWindow.length { self = ExposedWindow(at: now) }
        let entry = Entry(pid: caller.pid, use: use)
        guard entries.count >= ExposedWindow.capacity else {
            entries.insert(entry)
            return true
        }
        return entries.contains(entry)
    }
}

extension IssuedTokenLedger.State {
    mutating func countsSeparately(_ caller: AuditCaller, _ use: AuditUse, at now: Int) -> Bool {
        let place = ExposedWindow.Place(socket: use.exposedSocket ?? "", uid: caller.uid)
        // Sockets come and go. Dropping all windows bounds the memory; each would end within a minute anyway.
        if windows.count >= 1_024 { windows = [:] }
        return windows[place, default: ExposedWindow(at: now)].countsSeparately(caller, use, at: now)
    }
}
