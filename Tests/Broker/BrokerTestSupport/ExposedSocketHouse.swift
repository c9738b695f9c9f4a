import Glibc
import SessionVault
import Synchronization
import Testing

@testable import BrokerCore

final class RecordedSockets: Sendable {
    private struct State {
        var open: Set<String> = []
        var opened = 0
        var refused: Set<String> = []
    }
    private let state = Mutex(State())
    var open: Set<String> { state.withLock { $0.open } }
    var opened: Int { state.withLock { $0.opened } }
    func refuse(_ name: String) { state.withLock { $0.refused = [name] } }

    var listening: ExposedSocketRegistry.Listening {
        ExposedSocketRegistry.Listening(
            open: { exposedSocket throws(BrokerError) in
                let isRefused = self.state.withLock { state in
                    guard !state.refused.contains(exposedSocket.name) else { return true }
                    state.open.insert(exposedSocket.name)
                    state.opened += 1
                    return false
                }
                if isRefused { throw .conflict(.any) }
            }, close: { exposedSocket in _ = self.state.withLock { $0.open.remove(exposedSocket.name) } })
    }
}

final class ExposedSocketFacts: Sendable {
    private let state = Mutex<[String]>([])
    var all: [String] { state.withLock { $0 } }
    @Sendable func note(_ fact: ExposedSocketRegistry.Fact) {
        let text =
            switch fact {
            case .opened(let exposedSocket): "opened \(exposedSocket.name)"
            case .closed(let exposedSocket, let ending): "closed \(exposedSocket.name) \(ending.rawValue)"
            case .failed(let name, let reason): "failed \(name) \(reason)"
            case .damaged: "damaged"
            }
        state.withLock { $0.append(text) }
    }
}

final class AccountBindings: Sendable {
    private let state = Mutex([House.name: SessionBinding(provider: "https://id.example", clientID: "c")])
    @Sendable func find(_ name: AccountName) -> SessionBinding? { state.withLock { $0[name] } }
    func set(_ provider: String?, _ clientID: String = "c") {
        state.withLock { $0[House.name] = provider.map { SessionBinding(provider: $0, clientID: clientID) } }
    }
}

final class ExposedSocketFolder: Sendable {
    let path: String
    init() throws {
        var template = Array("/tmp/exposures.XXXXXX".utf8CString)
        try #require(unsafe mkdtemp(&template) != nil)
        path = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }
    deinit {
        for name in ["exposed-sockets.json", "exposed-sockets.json.damaged", "exposed-sockets.made"] {
            unsafe unlink("\(path)/\(name)")
        }
        unsafe rmdir(path)
    }
    var file: StateFile { StateFile(directory: path, name: "exposed-sockets.json") }
}

struct ExposedSocketHouse {
    let clock = TestClock()
    let sockets = RecordedSockets()
    let told = ExposedSocketFacts()
    let bindings = AccountBindings()
    let folder: ExposedSocketFolder

    init() throws { folder = try ExposedSocketFolder() }

    func registry(_ clock: BrokerClock? = nil) -> ExposedSocketRegistry {
        ExposedSocketRegistry(
            listening: sockets.listening, file: folder.file, clock: clock ?? self.clock.clock,
            binding: bindings.find,
            record: told.note)
    }

    func order(_ name: String, _ lifetime: Int? = nil, _ ceiling: [String]? = ["openid"]) -> ExposedSocket.Order {
        ExposedSocket.Order(
            name: name, accounts: [House.name], ceiling: ceiling, lifetime: lifetime.map { .seconds($0) })
    }
}

protocol ExposedSocketSuite {
    var house: ExposedSocketHouse { get }
}

extension ExposedSocketSuite {
    var clock: TestClock { house.clock }
    var sockets: RecordedSockets { house.sockets }
    var told: ExposedSocketFacts { house.told }
    var bindings: AccountBindings { house.bindings }
    var folder: ExposedSocketFolder { house.folder }

    func registry(_ clock: BrokerClock? = nil) -> ExposedSocketRegistry { house.registry(clock) }

    func restarted(_ former: ExposedSocketRegistry? = nil, _ clock: BrokerClock? = nil) async -> ExposedSocketRegistry {
        await former?.closeAll()
        let next = registry(clock)
        await next.restore()
        return next
    }

    func order(_ name: String, _ lifetime: Int? = nil, _ ceiling: [String]? = ["openid"]) -> ExposedSocket.Order {
        house.order(name, lifetime, ceiling)
    }
}
