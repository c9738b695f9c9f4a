import Glibc
import MCPBridge
import StrictJSON

/// What the daemon says of an exposed socket when it starts its relay: a line of JSON at descriptor 3.
struct RestrictedOrders {
    static let descriptor: Int32 = 3
    /// 256 names of tools, and some paths.
    private static let maxLine = 1 << 18

    let name: String
    let account: String
    let sockets: [String]
    let mode: UInt32
    /// Users who may connect beside this one and root.
    let uids: [UInt32]
    let rule: MessageRule

    /// Waits for the line. Nil if none comes.
    static func read() -> RestrictedOrders? {
        var line: [UInt8] = []
        var byte: UInt8 = 0
        while line.count < maxLine {
            let count = unsafe recv(descriptor, &byte, 1, 0)
            if count < 0, errno == EINTR { continue }
            guard count == 1 else { return nil }
            if byte == 10 { return RestrictedOrders(line) }
            line.append(byte)
        }
        return nil
    }

    private init?(_ line: [UInt8]) {
        guard let json = try? JSON(parsing: line), let name = json["name"]?.string,
            let account = json["account"]?.string, let sockets = json["sockets"]?.array,
            let mode = json["mode"]?.integer.flatMap({ UInt32(exactly: $0) }), let uids = json["allow_uids"]?.array,
            let methods = json["methods"]?.array
        else { return nil }
        self.name = name
        self.account = account
        self.sockets = sockets.compactMap(\.string)
        self.mode = mode
        self.uids = uids.compactMap { $0.integer.flatMap { UInt32(exactly: $0) } }
        // A list that cannot be read allows nothing.
        let tools = json["tools"].map { ($0.array ?? []).compactMap(\.string) }
        rule = MessageRule(tools: tools, methods: methods.compactMap(\.string))
    }

    func admits(_ uid: UInt32) -> Bool { uid == getuid() || uid == 0 || uids.contains(uid) }
}
