internal import CSystemd
internal import Dispatch
internal import Glibc

/// The address of a bus. Nil means the one in the environment (`DBUS_SESSION_BUS_ADDRESS` or `XDG_RUNTIME_DIR`, and
/// `DBUS_SYSTEM_BUS_ADDRESS`).
enum BusPlace: Sendable, Equatable {
    case session(address: String? = nil)
    case system(address: String? = nil)
}

/// Why a call over the bus failed. Of an error that another process returned only the name is kept, which D-Bus limits
/// to letters, digits, `_` and `.`. Its message is arbitrary text and is never passed on.
enum BusFailure: Error, Equatable {
    /// libsystemd is missing or too old.
    case noLibrary
    /// No bus listens at the address, or there is no address.
    case noBus
    case lost
    case timedOut
    /// The service, or the bus itself, returned an error with this name.
    case refused(String)
    /// The message does not have the form that the interface specifies.
    case malformed
    /// The service's name has no owner, or the owner has disconnected.
    case absent
    case dismissed
    /// The user did not react to the prompt in time.
    case unanswered
}

/// One connection to a bus, used by one thread. Every wait has a timeout.
@safe final class BusConnection {
    /// The timeout of one call. Services on the same machine respond in milliseconds.
    static let callTimeout: Duration = .seconds(5)

    private let bus: OpaquePointer

    /// Connects and waits until the bus has accepted the connection.
    init(_ place: BusPlace) throws(BusFailure) {
        guard csystemd_load() else { throw .noLibrary }
        var bus: OpaquePointer?
        let result =
            switch place {
            case .session(let address): unsafe csystemd_open(address, false, &bus)
            case .system(let address): unsafe csystemd_open(address, true, &bus)
            }
        guard result >= 0, let bus = unsafe bus else { throw .noBus }
        unsafe self.bus = bus
        let deadline = SuspendingClock.now + BusConnection.callTimeout
        do throws(BusFailure) {
            while unsafe csystemd_is_ready(bus) <= 0 {
                guard SuspendingClock.now < deadline else { throw .timedOut }
                if try next() == nil, unsafe csystemd_is_ready(bus) <= 0 { try wait(until: deadline) }
            }
        } catch {
            throw error == .lost ? .noBus : error
        }
    }

    deinit { unsafe csystemd_close(bus) }

    /// - Parameter isSensitive: the arguments are or the reply has a secret.
    func call(
        _ member: String, of interface: String, at path: String, in service: String, _ arguments: [BusValue] = [],
        isSensitive: Bool = false
    ) throws(BusFailure) -> BusMessage {
        var message: OpaquePointer?
        let made = unsafe csystemd_message_call(bus, &message, service, path, interface, member)
        guard made >= 0, let message = unsafe message else { throw BusConnection.failure(made) }
        let request = unsafe BusMessage(owning: message)
        if isSensitive { request.markSensitive() }
        for argument in arguments { try request.append(argument) }
        // D-Bus limits a name to 255 bytes.
        var name = [CChar](repeating: 0, count: 256)
        var answer: OpaquePointer?
        let microseconds = UInt64(BusConnection.callTimeout / .microseconds(1))
        let result = unsafe csystemd_call(bus, request.pointer, microseconds, &name, name.count, &answer)
        guard result >= 0, let answer = unsafe answer else {
            let text = name.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }
            throw BusConnection.failure(result, name: String(decoding: text, as: UTF8.self))
        }
        let reply = unsafe BusMessage(owning: answer)
        if isSensitive { reply.markSensitive() }
        return reply
    }

    func callBus(_ member: String, _ argument: String? = nil) throws(BusFailure) -> BusMessage {
        let bus = "org.freedesktop.DBus"
        return try call(member, of: bus, at: "/org/freedesktop/DBus", in: bus, argument.map { [.text($0)] } ?? [])
    }

    /// Subscribes to the signals that match the rule. ``next()`` returns them.
    func addMatch(_ rule: String) throws(BusFailure) { _ = try callBus("AddMatch", rule) }

    /// Subscribes to the signal that the service's name has another owner.
    func addOwnerMatch(_ name: String) throws(BusFailure) {
        try addMatch(
            "type='signal',sender='org.freedesktop.DBus',interface='org.freedesktop.DBus',member='NameOwnerChanged',"
                + "arg0='\(name)'")
    }

    /// True if a service with this name is running. One that the bus could start is not started.
    func hasOwner(_ name: String) throws(BusFailure) -> Bool { try callBus("NameHasOwner", name).readBool() }

    /// The reply with a property of an object, entered up to its value.
    func property(
        _ property: String, _ type: String, of interface: String, at path: String, in service: String
    ) throws(BusFailure) -> BusMessage {
        let answer = try call(
            "Get", of: "org.freedesktop.DBus.Properties", at: path, in: service, [.text(interface), .text(property)])
        try answer.enter("v", type)
        return answer
    }

    /// Processes what is pending, up to a message; nil if there is none.
    func next() throws(BusFailure) -> BusMessage? {
        while true {
            var message: OpaquePointer?
            let result = unsafe csystemd_process(bus, &message)
            if let message = unsafe message { return unsafe BusMessage(owning: message) }
            guard result >= 0 else { throw BusConnection.failure(result) }
            if result == 0 { return nil }
        }
    }

    /// Waits for a message; nil if the deadline has passed.
    func next(until deadline: SuspendingClock.Instant) throws(BusFailure) -> BusMessage? {
        while SuspendingClock.now < deadline {
            if let message = try next() { return message }
            try wait(until: deadline)
        }
        return nil
    }

    /// Waits until something is pending, or the deadline has passed.
    func wait(until deadline: SuspendingClock.Instant) throws(BusFailure) {
        let left = SuspendingClock.now.duration(to: deadline)
        guard left > .zero else { return }
        let result = unsafe csystemd_wait(bus, UInt64(left / .microseconds(1)) + 1)
        guard result >= 0 || result == -EINTR else { throw BusConnection.failure(result) }
    }

    /// The descriptor to include in `poll`, and the maximum timeout in milliseconds; -1 for none.
    func interest() throws(BusFailure) -> (waiting: pollfd, milliseconds: Int32) {
        var descriptor: Int32 = -1
        var events: Int32 = 0
        var deadline = UInt64.max
        let result = unsafe csystemd_interest(bus, &descriptor, &events, &deadline)
        guard result >= 0 else { throw BusConnection.failure(result) }
        let waiting = pollfd(fd: descriptor, events: Int16(truncatingIfNeeded: events), revents: 0)
        guard deadline != .max else { return (waiting, -1) }
        var time = timespec()
        _ = unsafe clock_gettime(CLOCK_MONOTONIC, &time)
        let now = UInt64(time.tv_sec) * 1_000_000 + UInt64(time.tv_nsec) / 1_000
        return (waiting, deadline <= now ? 0 : Int32(min((deadline - now) / 1_000 + 1, 60_000)))
    }

    private static func failure(_ result: Int32, name: String = "") -> BusFailure {
        switch -result {
        case ETIMEDOUT: .timedOut
        case ECONNRESET, ENOTCONN, EPIPE, ESHUTDOWN, ECONNREFUSED, ENOENT, ENOMEDIUM:
            name.isEmpty ? .lost : .refused(name)
        default: name.isEmpty ? .malformed : .refused(name)
        }
    }
}

public enum BusEvent: String, Sendable, CaseIterable {
    /// The Secret Service started or stopped, or one of its collections was locked, unlocked, created or deleted. A
    /// program that waits for a key should try again. Also reported when watching begins, because a change may have
    /// happened before.
    case secretServiceChanged = "secret_service_changed"
    /// The screen was locked, or is locked when watching begins.
    case screenLocked = "screen_locked"
}

/// Watches for one event until it is released. A thread of its own waits in `poll`. A lost connection is opened again,
/// with increasing delays between the attempts.
final class BusWatch: Sendable {
    /// The shortest and the longest delay between attempts to connect.
    private static let patience: ClosedRange<Duration> = .seconds(1) ... .seconds(60)

    private let stop: Wakeup?

    /// - Parameter report: called on the watch's thread; events that arrive together cause one call.
    init(for event: BusEvent, place: BusPlace, report: @escaping @Sendable () -> Void) {
        stop = try? Wakeup()
        guard let stop else { return }
        DispatchQueue(label: "ringback.\(event.rawValue)").async {
            BusWatch.watch(event, place, stop, report)
        }
    }

    deinit { stop?.wake() }

    private static func watch(_ event: BusEvent, _ place: BusPlace, _ stop: Wakeup, _ report: @Sendable () -> Void) {
        var wait = patience.lowerBound
        while true {
            do throws(BusFailure) {
                let bus = try BusConnection(place)
                let subject: any BusSubject =
                    switch event {
                    case .secretServiceChanged: try SecretServiceSubject(bus)
                    case .screenLocked: try ScreenLockSubject(bus)
                    }
                wait = patience.lowerBound
                if subject.isDueAtOnce { report() }
                guard try serve(bus, subject, stop, report) else { return }
            } catch {
                // Nothing is reported while there is no bus.
            }
            var waiting = [stop.interest]
            guard unsafe poll(&waiting, 1, Int32(wait / .milliseconds(1))) == 0 else { return }
            wait = min(wait * 2, patience.upperBound)
        }
    }

    /// Reports events until the connection ends. Returns false if the watch is to stop.
    private static func serve(
        _ bus: BusConnection, _ subject: any BusSubject, _ stop: Wakeup, _ report: @Sendable () -> Void
    ) throws(BusFailure) -> Bool {
        while true {
            var isDue = false
            // A malformed message is ignored.
            while let message = try bus.next() { isDue = ((try? subject.concerns(message)) ?? false) || isDue }
            if isDue { report() }
            let interest = try bus.interest()
            var waiting = [interest.waiting, stop.interest]
            _ = unsafe poll(&waiting, 2, interest.milliseconds)
            if waiting[1].revents != 0 { return false }
        }
    }
}

/// The event that a watch waits for. Its initializer subscribes to the signals.
protocol BusSubject {
    /// True if the event must be reported at once, because it may have happened before.
    var isDueAtOnce: Bool { get }
    func concerns(_ message: BusMessage) throws(BusFailure) -> Bool
}
