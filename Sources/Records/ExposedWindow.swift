/// How many programs behind a restricted socket the audit log tells apart, for each uid there. A program that starts a
/// process for each request, or asks for another scope each time, would otherwise make a line with each. Beyond the
/// bound uses are counted together.
struct ExposedWindow {
    struct Place: Hashable {
        let socket: String
        let uid: UInt32
    }
    private struct Entry: Hashable {
        let pid: Int32
        let use: AuditUse
    }
    /// Unix seconds.
    private var start: Int
    private var entries: Set<Entry> = []

    /// Uses by processes in one window.
    static let capacity = 16
    /// Seconds.
    static let length = 60

    init(at now: Int) { start = now }

    /// True if this use of this process has a line of its own.
    mutating func tellsApart(_ caller: AuditCaller, _ use: AuditUse, at now: Int) -> Bool {
        // A clock that was set back begins a new window too.
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
    mutating func tellsApart(_ caller: AuditCaller, _ use: AuditUse, at now: Int) -> Bool {
        let place = ExposedWindow.Place(socket: use.exposedSocket ?? "", uid: caller.uid)
        // Sockets come and go; their windows are old after a minute.
        if windows.count >= 1_024 { windows = [:] }
        return windows[place, default: ExposedWindow(at: now)].tellsApart(caller, use, at: now)
    }
}
