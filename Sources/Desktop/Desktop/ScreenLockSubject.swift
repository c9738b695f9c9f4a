internal import Glibc

/// Detects that the user's screen is locked, through logind: by its `Lock` signal (a request, made by `loginctl
/// lock-session` or by closing the lid), or by the session's `LockedHint` (which desktops set when the user locks the
/// screen).
struct ScreenLockSubject: BusSubject {
    private static let name = "org.freedesktop.login1"
    private static let session = "org.freedesktop.login1.Session"
    private static let properties = "org.freedesktop.DBus.Properties"

    private let bus: BusConnection

    init(_ bus: BusConnection) throws(BusFailure) {
        self.bus = bus
        let sender = "type='signal',sender='\(ScreenLockSubject.name)',"
        try bus.addMatch(sender + "interface='\(ScreenLockSubject.session)',member='Lock'")
        try bus.addMatch(
            sender + "interface='\(ScreenLockSubject.properties)',member='PropertiesChanged',"
                + "arg0='\(ScreenLockSubject.session)'")
    }

    var isDueAtOnce: Bool {
        ownSessions.contains { path in
            (try? property("LockedHint", "b", of: ScreenLockSubject.session, at: path).readBool()) ?? false
        }
    }

    func concerns(_ message: BusMessage) throws(BusFailure) -> Bool {
        if message.isSignal("Lock", of: ScreenLockSubject.session) { return isOurs(message.path) }
        guard message.isSignal("PropertiesChanged", of: ScreenLockSubject.properties),
            try message.readText() == ScreenLockSubject.session, try ScreenLockSubject.saysLocked(message)
        else { return false }
        return isOurs(message.path)
    }

    private static func saysLocked(_ message: BusMessage) throws(BusFailure) -> Bool {
        try message.enter("a", "{sv}")
        while try message.enterNext("e", "sv") {
            guard try message.readText() == "LockedHint" else {
                try message.skip("v")
                try message.leave()
                continue
            }
            try message.enter("v", "b")
            return try message.readBool()
        }
        return false
    }

    /// The sessions are looked up for each event, because they begin and end while this process runs. If no session is
    /// known to be ours, every session of our user counts: locking too often is safer than missing a lock.
    private func isOurs(_ path: String?) -> Bool {
        guard let path else { return false }
        let own = ownSessions
        if !own.isEmpty { return own.contains(path) }
        let answer = try? property("User", "(uo)", of: ScreenLockSubject.session, at: path)
        guard let answer, (try? answer.enter("r", "uo")) != nil else { return false }
        return (try? answer.readNumber()) == getuid()
    }

    /// The sessions that count as ours: the one that this process runs in, the one that its environment names, and the
    /// user's graphical one. A user service runs in none of them, and a program started over SSH must notice the
    /// desktop's lock as well.
    private var ownSessions: [String] {
        let named = unsafe getenv("XDG_SESSION_ID").map { unsafe String(cString: $0) }
        let paths = [
            try? manager("GetSessionByPID", .number(UInt32(getpid()))),
            named.flatMap { try? manager("GetSession", .text($0)) }, try? displaySession(),
        ]
        return paths.compactMap(\.self)
    }

    private func displaySession() throws(BusFailure) -> String? {
        let user = try manager("GetUser", .number(getuid()))
        let answer = try property("Display", "(so)", of: "org.freedesktop.login1.User", at: user)
        try answer.enter("r", "so")
        try answer.skip("s")
        let path = try answer.readPath()
        return path == "/" ? nil : path
    }

    private func manager(_ member: String, _ argument: BusValue) throws(BusFailure) -> String {
        try bus.call(
            member, of: "org.freedesktop.login1.Manager", at: "/org/freedesktop/login1", in: ScreenLockSubject.name,
            [argument]
        ).readPath()
    }

    private func property(
        _ property: String, _ type: String, of interface: String, at path: String
    ) throws(BusFailure) -> BusMessage {
        try bus.property(property, type, of: interface, at: path, in: ScreenLockSubject.name)
    }
}
