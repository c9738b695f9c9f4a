import BrokerCore
import Cryptography
import RingbackBase
import Synchronization

final class TestClock: Sendable {
    private struct State {
        /// Unix seconds at boot, by the wall clock as it is set now.
        var wallAtBoot = 1_799_950_000
        /// Milliseconds since boot.
        var boot = 50_000_000
        var sleepers: [(until: Int, signal: Promise<Void>)] = []
    }
    private let state = Mutex(State())

    var now: Int { state.withLock { $0.wallAtBoot + $0.boot / 1_000 } }
    var boot: Int { state.withLock { $0.boot } }
    var bootInstant: BootInstant { BootInstant(milliseconds: boot) }

    /// When the sleepers want to be woken, milliseconds since boot.
    var wakes: [Int] { state.withLock { $0.sleepers.map(\.until) } }

    /// Somebody sets the wall clock; no time passes.
    func setWall(by seconds: Int) { state.withLock { $0.wallAtBoot += seconds } }

    func advance(by seconds: Int) { advance(milliseconds: seconds * 1_000) }

    func advance(milliseconds: Int) {
        let woken = state.withLock { state in
            state.boot += milliseconds
            let woken = state.sleepers.filter { $0.until <= state.boot }
            state.sleepers.removeAll { $0.until <= state.boot }
            return woken
        }
        for sleeper in woken { sleeper.signal.fulfil(()) }
    }

    /// Waits until the timers of `count` flows sleep that began at the present time. A step of the clock that comes while
    /// a timer still computes its pause would not wake it.
    func flowTimersSleep(_ count: Int = 1) async -> Bool {
        await eventually { wakes.count { $0 == boot + 30_000 } >= count }
    }

    /// The machine is started again: the time since boot begins anew, and the wall clock goes on.
    func reboot() {
        state.withLock { state in
            state.wallAtBoot += (state.boot - 30_000) / 1_000
            state.boot = 30_000
        }
    }

    private func sleep(_ duration: Duration) async throws {
        let signal = Promise<Void>()
        let isOver = state.withLock { state in
            let (seconds, attoseconds) = duration.components
            let until = state.boot + Int(seconds) * 1_000 + Int(attoseconds / 1_000_000_000_000_000)
            guard until > state.boot else { return true }
            state.sleepers.append((until, signal))
            return false
        }
        if isOver { return }
        guard await signal.wait() != nil else { throw CancellationError() }
    }

    var clock: BrokerClock { clock(bootID: "this boot") }

    func clock(bootID: String, machineID: String = "") -> BrokerClock {
        BrokerClock(
            now: { self.now }, boot: { self.boot }, bootID: bootID, machineID: machineID,
            sleep: { try await self.sleep($0) })
    }

    /// The same time, but nobody wakes when it passes: a sleep lasts until its sleeper is cancelled.
    var clockWithoutWaking: BrokerClock {
        BrokerClock(
            now: { self.now }, boot: { self.boot },
            sleep: { _ in guard await Promise<Void>().wait() != nil else { throw CancellationError() } })
    }
}

/// Waits for what other tasks bring about; false if it does not come within 30 seconds.
func eventually(_ condition: () async -> Bool) async -> Bool {
    let end = ContinuousClock.now + .seconds(30)
    while await !condition() {
        guard ContinuousClock.now < end else { return false }
        await Task.yield()
    }
    return true
}

struct Unexpected: Error {
    let what: String
    init<Value>(_ what: Value = "") { self.what = "\(what)" }
}

struct TokenMint: Sendable {
    let key: PrivateKey
    let kid: String

    init(kid: String = "k1") throws {
        key = try PrivateKey.generate(.p256)
        self.kid = kid
    }

    func token(_ claims: JSON) throws -> String {
        let header: JSON = ["alg": "ES256", "kid": .string(kid), "typ": "JWT"]
        let signed = "\(Base64URL.encode(header.serialized())).\(Base64URL.encode(claims.serialized()))"
        let signature = try key.sign(message: Array(signed.utf8), algorithm: .es256)
        return "\(signed).\(Base64URL.encode(signature))"
    }

    var jwk: JSON {
        guard case .ellipticCurve(let curve, let x, let y) = key.publicKey.parts else { return .null }
        return [
            "kty": "EC", "crv": .string(curve.rawValue), "x": .string(Base64URL.encode(x)),
            "y": .string(Base64URL.encode(y)), "use": "sig", "kid": .string(kid),
        ]
    }
}

extension JSON {
    /// The object with one member set, or removed by nil.
    func setting(_ name: String, _ value: JSON?) -> JSON {
        var object = self.object ?? JSONObject()
        object[name] = value
        return .object(object)
    }
}
