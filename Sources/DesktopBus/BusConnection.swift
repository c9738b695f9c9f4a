internal import CSystemd
internal import Glibc

/// Where a bus is. Without an address, the environment says it (`DBUS_SESSION_BUS_ADDRESS` or `XDG_RUNTIME_DIR`,
/// `DBUS_SYSTEM_BUS_ADDRESS`).
public enum BusPlace: Sendable, Equatable {
    case session(address: String? = nil)
    case system(address: String? = nil)
}

/// Why the bus gave no answer. Of what the other side says only the name of its error is kept, which D-Bus limits to
/// letters, digits, `_` and `.`; its sentences are not ours to repeat.
enum BusFailure: Error, Equatable {
    /// There is no libsystemd that fits.
    case noLibrary
    /// Nothing listens at the bus's address, or there is no address.
    case noBus
    /// The connection ended.
    case lost
    case timedOut
    /// The other side, or the bus in its place, answered with an error of this name.
    case refused(String)
    /// What came has another form than the interface says.
    case malformed
    /// Nobody has the name, or whoever had it has gone.
    case absent
    /// The person said no.
    case dismissed
    /// The person said nothing.
    case unanswered
}

/// One connection to a bus, for one conversation on one thread. Every wait has a bound.
@safe final class BusConnection {
    /// What one call may take. Services on the same machine answer in milliseconds; what takes longer hangs.
    static let callTimeout: Duration = .seconds(5)

    private let bus: OpaquePointer

    /// Connects and waits until the bus has said hello.
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
        while unsafe csystemd_is_ready(bus) <= 0 {
            do throws(BusFailure) {
                guard SuspendingClock.now < deadline else { throw .timedOut }
                if try step() == nil { try wait(until: deadline) }
            } catch {
                throw error == .lost ? .noBus : error
            }
        }
    }

    deinit {
        unsafe csystemd_close(bus)
    }

    /// A method call, to be filled with its arguments.
    func request(_ member: String, of interface: String, at path: String, in service: String) throws(BusFailure)
        -> BusMessage
    {
        var message: OpaquePointer?
        let result = unsafe csystemd_message_call(bus, &message, service, path, interface, member)
        guard result >= 0, let message = unsafe message else { throw BusConnection.failure(result) }
        return unsafe BusMessage(owning: message)
    }

    /// Sends a method call and waits for its answer.
    func call(_ request: BusMessage) throws(BusFailure) -> BusMessage {
        // A name of D-Bus has 255 bytes at most.
        var name = [CChar](repeating: 0, count: 256)
        var answer: OpaquePointer?
        let microseconds = UInt64(BusConnection.callTimeout / .microseconds(1))
        let result = unsafe csystemd_call(bus, request.pointer, microseconds, &name, name.count, &answer)
        guard result >= 0, let answer = unsafe answer else {
            let text = name.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }
            throw BusConnection.failure(result, name: String(decoding: text, as: UTF8.self))
        }
        return unsafe BusMessage(owning: answer)
    }

    /// Asks the bus for the signals of the rule. They come out of ``step()``.
    func addMatch(_ rule: String) throws(BusFailure) {
        let bus = "org.freedesktop.DBus"
        let request = try request("AddMatch", of: bus, at: "/org/freedesktop/DBus", in: bus)
        try request.append(rule)
        _ = try call(request)
    }

    enum Step {
        case worked
        case message(BusMessage)
    }

    /// Does one step of what there is to do; nil if there is nothing.
    func step() throws(BusFailure) -> Step? {
        var message: OpaquePointer?
        let result = unsafe csystemd_process(bus, &message)
        if let message = unsafe message { return .message(unsafe BusMessage(owning: message)) }
        guard result >= 0 else { throw BusConnection.failure(result) }
        return result > 0 ? .worked : nil
    }

    /// Waits until there is something to do, or the deadline has passed.
    func wait(until deadline: SuspendingClock.Instant) throws(BusFailure) {
        let left = SuspendingClock.now.duration(to: deadline)
        guard left > .zero else { return }
        let result = unsafe csystemd_wait(bus, UInt64(left / .microseconds(1)) + 1)
        guard result >= 0 || result == -EINTR else { throw BusConnection.failure(result) }
    }

    /// What to poll for beside other things, and for how many milliseconds at most; -1 for no bound.
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
