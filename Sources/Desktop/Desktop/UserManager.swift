internal import Glibc

enum UserManagerError: Error, Sendable, Equatable {
    /// No service manager on the session bus can do this. Nothing was started, so the caller may start the program
    /// itself.
    case unavailable
    /// It failed or did not respond in time. Another attempt could start the program twice.
    case failed(reason: String)
}

/// A client of the user's service manager (`systemd --user`). It starts a program as a transient service, which
/// inherits nothing from the daemon: no `NoNewPrivileges`, no seccomp filter, no resource limit.
struct UserManagerClient: Sendable {
    private static let name = "org.freedesktop.systemd1"
    private static let path = "/org/freedesktop/systemd1"
    private static let manager = "org.freedesktop.systemd1.Manager"

    let place: BusPlace

    /// Starts a program and waits until it runs. Blocks for at most some seconds.
    ///
    /// - Parameters:
    ///   - id: letters and digits; the unit's name is `app-ringback-ID.service`.
    ///   - description: the unit's description in the journal and in `systemctl --user`.
    ///   - arguments: an absolute path and the arguments, each passed unchanged.
    ///   - environment: `NAME=value` lines for variables that the manager itself does not have. The manager's values
    ///     are used first, because they belong to the user's current desktop session, which may be newer than the
    ///     daemon.
    func start(id: String, description: String, arguments: [String], environment: [String]) throws(UserManagerError) {
        let bus: BusConnection
        do throws(BusFailure) {
            bus = try BusConnection(place)
            // Even if the bus could activate it: a private bus in a test or a container has the activation file too.
            guard try bus.hasOwner(UserManagerClient.name) else { throw .absent }
        } catch {
            throw .unavailable
        }
        let isRunning: Bool
        do throws(BusFailure) {
            let known = (try? variables(bus)) ?? []
            let added = environment.filter { line in !known.contains(UserManagerClient.name(of: line)) }
            isRunning = try start(
                "app-ringback-\(id).service",
                [
                    .property("Description", .text(description)), .property("Type", .text("exec")),
                    // Remove a failed unit at once; its journal is kept.
                    .property("CollectMode", .text("inactive-or-failed")), .property("Slice", .text("app.slice")),
                    .property("Environment", .texts(added)),
                    .property("ExecStart", UserManagerClient.command(arguments)),
                ], bus)
        } catch {
            switch error {
            case .timedOut: throw .failed(reason: "the service manager did not respond in time")
            case .lost: throw .failed(reason: "the service manager went away")
            default: throw .unavailable
            }
        }
        guard isRunning else {
            throw .failed(reason: "the service manager could not start it; the user's journal has the reason")
        }
    }

    /// False if the manager reports that starting failed.
    private func start(_ unit: String, _ properties: [BusValue], _ bus: BusConnection) throws(BusFailure) -> Bool {
        // Subscribe before the job is created, so that its end is not missed.
        try bus.addMatch(
            "type='signal',sender='\(UserManagerClient.name)',interface='\(UserManagerClient.manager)',"
                + "member='JobRemoved'")
        _ = try call("Subscribe", bus)
        let job: String
        do throws(BusFailure) {
            job = try self.job(unit, properties + [.property("ExitType", .text("cgroup"))], bus)
        } catch {
            // `ExitType` exists since systemd 250. Without it a service ends with its first process, and
            // `KillMode=process` keeps the programs alive that this process has started, as openers do.
            guard case .refused(let name) = error, name != "org.freedesktop.DBus.Error.NoReply" else { throw error }
            job = try self.job(unit, properties + [.property("KillMode", .text("process"))], bus)
        }
        return try awaitEnd(of: job, bus)
    }

    /// The path of the job that starts the unit.
    private func job(_ unit: String, _ properties: [BusValue], _ bus: BusConnection) throws(BusFailure) -> String {
        try call(
            "StartTransientUnit", bus, .text(unit), .text("fail"), .array(of: "(sv)", properties),
            .array(of: "(sa(sv))", [])
        ).readPath()
    }

    /// The manager expands `$NAME` and `${NAME}` in a command's words, and `$$` gives a dollar sign. Attack: a web page
    /// could open a link with `$NAME` in it and so receive variables of the user's environment. Dollar signs are
    /// therefore doubled.
    private static func command(_ words: [String]) -> BusValue {
        let escaped = words.enumerated().map { $0 == 0 ? $1 : $1.replacing("$", with: "$$") }
        return .array(of: "(sasb)", [.structure([.text(words.first ?? ""), .texts(escaped), .bool(false)])])
    }

    private func awaitEnd(of job: String, _ bus: BusConnection) throws(BusFailure) -> Bool {
        let deadline = SuspendingClock.now + BusConnection.callTimeout
        while let message = try bus.next(until: deadline) {
            guard message.isSignal("JobRemoved", of: UserManagerClient.manager) else { continue }
            _ = try message.readNumber()
            guard try message.readPath() == job else { continue }
            try message.skip("s")
            return try message.readText() == "done"
        }
        // The job was accepted and no failure was reported in time.
        return true
    }

    private func variables(_ bus: BusConnection) throws(BusFailure) -> Set<String> {
        let answer = try bus.property(
            "Environment", "as", of: UserManagerClient.manager, at: UserManagerClient.path, in: UserManagerClient.name)
        return Set(try answer.readTexts().map(UserManagerClient.name(of:)))
    }

    private func call(
        _ member: String, _ bus: BusConnection, _ arguments: BusValue...
    ) throws(BusFailure) -> BusMessage {
        try bus.call(
            member, of: UserManagerClient.manager, at: UserManagerClient.path, in: UserManagerClient.name, arguments)
    }

    private static func name(of line: String) -> String { String(line.prefix { $0 != "=" }) }
}
