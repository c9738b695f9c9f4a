internal import Glibc

/// Why the person's service manager did not start a program.
public enum UserManagerError: Error, Sendable, Equatable {
    /// There is none on the session bus, or it cannot do this: nothing was started, and whoever asked may do it themselves.
    case unavailable
    /// It tried and failed, or did not answer in time: asked again, there might be two.
    case failed(reason: String)
}

/// The person's service manager (`systemd --user`), as far as Ringback may use it: it starts a program as a transient
/// service of its own, which inherits nothing of the daemon's: no `NoNewPrivileges`, no seccomp filter, no limit.
public struct UserManagerClient: Sendable {
    private static let name = "org.freedesktop.systemd1"
    private static let path = "/org/freedesktop/systemd1"
    private static let manager = "org.freedesktop.systemd1.Manager"

    private let place: BusPlace

    /// A client for the manager on that bus; by default the session bus that the environment names.
    public init(place: BusPlace = .session()) {
        self.place = place
    }

    /// Starts a program and waits until it runs. Blocks for some seconds at most.
    ///
    /// - Parameters:
    ///   - id: makes the unit's name, `app-ringback-ID.service`: letters and digits.
    ///   - description: what the journal and `systemctl --user` call it.
    ///   - arguments: an absolute path, and what comes after it, each word as it is.
    ///   - environment: `NAME=value` lines for what the manager has no such variable of: it knows the person's session
    ///     better than a daemon that was started before it.
    public func start(
        id: String, description: String, arguments: [String], environment: [String]
    ) throws(UserManagerError) {
        let bus: BusConnection
        do throws(BusFailure) {
            bus = try BusConnection(place)
            guard try hasOwner(bus) else { throw .absent }
        } catch {
            throw .unavailable
        }
        let isRunning: Bool
        do throws(BusFailure) {
            let known = (try? variables(bus)) ?? []
            let added = environment.filter { line in !known.contains(UserManagerClient.name(of: line)) }
            let unit = Unit(
                name: "app-ringback-\(id).service", description: description, arguments: arguments, environment: added)
            isRunning = try start(unit, bus)
        } catch {
            switch error {
            case .timedOut: throw .failed(reason: "the service manager did not answer in time")
            case .lost: throw .failed(reason: "the service manager went away")
            default: throw .unavailable
            }
        }
        guard isRunning else { throw .failed(reason: "the service manager could not start it; see journalctl --user") }
    }

    private struct Unit {
        let name: String
        let description: String
        let arguments: [String]
        let environment: [String]
    }

    /// False if the manager says that it failed.
    private func start(_ unit: Unit, _ bus: BusConnection) throws(BusFailure) -> Bool {
        // Before the job is made: its end must not be missed.
        try bus.addMatch(
            "type='signal',sender='\(UserManagerClient.name)',interface='\(UserManagerClient.manager)',"
                + "member='JobRemoved'")
        _ = try bus.call(try call("Subscribe", bus))
        let job: String
        do throws(BusFailure) {
            job = try bus.call(try request(unit, waitsForAll: true, bus)).readPath()
        } catch {
            // Before version 250 a service ended with its first process. One that hands over to another program, as
            // openers do, must not take that program with it.
            guard case .refused(let name) = error, name != "org.freedesktop.DBus.Error.NoReply" else { throw error }
            job = try bus.call(try request(unit, waitsForAll: false, bus)).readPath()
        }
        return try awaitEnd(of: job, bus)
    }

    private func request(_ unit: Unit, waitsForAll: Bool, _ bus: BusConnection) throws(BusFailure) -> BusMessage {
        let request = try call("StartTransientUnit", bus)
        try request.append(unit.name)
        try request.append("fail")
        try request.open("a", "(sv)")
        try request.append(property: "Description", unit.description)
        try request.append(property: "Type", "exec")
        try request.append(property: waitsForAll ? "ExitType" : "KillMode", waitsForAll ? "cgroup" : "process")
        // A failed one is not kept for somebody to look at: its journal is.
        try request.append(property: "CollectMode", "inactive-or-failed")
        try request.append(property: "Slice", "app.slice")
        try request.append(environment: unit.environment)
        try request.append(command: unit.arguments)
        try request.close()
        try request.open("a", "(sa(sv))")
        try request.close()
        return request
    }

    private func awaitEnd(of job: String, _ bus: BusConnection) throws(BusFailure) -> Bool {
        let deadline = SuspendingClock.now + BusConnection.callTimeout
        while SuspendingClock.now < deadline {
            guard let step = try bus.step() else {
                try bus.wait(until: deadline)
                continue
            }
            guard case .message(let message) = step, message.isSignal("JobRemoved", of: UserManagerClient.manager)
            else { continue }
            _ = try message.readNumber()
            guard try message.readPath() == job else { continue }
            try message.skip("s")
            return try message.readText() == "done"
        }
        // It has been asked to, and nothing speaks against it.
        return true
    }

    /// The names of the variables that its services get.
    private func variables(_ bus: BusConnection) throws(BusFailure) -> Set<String> {
        let request = try bus.request(
            "Get", of: "org.freedesktop.DBus.Properties", at: UserManagerClient.path, in: UserManagerClient.name)
        try request.append(UserManagerClient.manager)
        try request.append("Environment")
        let answer = try bus.call(request)
        try answer.enter("v", "as")
        return Set(try answer.readTexts().map(UserManagerClient.name(of:)))
    }

    /// A service manager that the bus would have to start is none: a private bus in a test or a container has it in its
    /// files all the same.
    private func hasOwner(_ bus: BusConnection) throws(BusFailure) -> Bool {
        let driver = "org.freedesktop.DBus"
        let request = try bus.request("NameHasOwner", of: driver, at: "/org/freedesktop/DBus", in: driver)
        try request.append(UserManagerClient.name)
        return try bus.call(request).readBool()
    }

    private func call(_ member: String, _ bus: BusConnection) throws(BusFailure) -> BusMessage {
        try bus.request(
            member, of: UserManagerClient.manager, at: UserManagerClient.path, in: UserManagerClient.name)
    }

    private static func name(of line: String) -> String { String(line.prefix { $0 != "=" }) }
}

extension BusMessage {
    fileprivate func append(property name: String, _ value: String) throws(BusFailure) {
        try open("r", "sv")
        try append(name)
        try open("v", "s")
        try append(value)
        try close(2)
    }

    fileprivate func append(environment lines: [String]) throws(BusFailure) {
        try open("r", "sv")
        try append("Environment")
        try open("v", "as")
        try append(texts: lines)
        try close(2)
    }

    /// The manager replaces `$NAME` and `${NAME}` in a command's words, and takes `$$` for a dollar: a URL's own dollars
    /// are doubled, or a page that makes somebody open a link could read the person's environment.
    fileprivate func append(command words: [String]) throws(BusFailure) {
        try open("r", "sv")
        try append("ExecStart")
        try open("v", "a(sasb)")
        try open("a", "(sasb)")
        try open("r", "sasb")
        try append(words.first ?? "")
        try append(texts: words.enumerated().map { $0 == 0 ? $1 : $1.replacing("$", with: "$$") })
        try append(false)
        try close(4)
    }
}
