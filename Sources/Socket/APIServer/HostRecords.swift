internal import Records
internal import StrictJSON

/// What was done with the hosts that share the vault, for the audit log.
enum HostRecord {
    case joined(name: String, owner: String)
    case invited(role: String, seconds: Int)
    case gaveKey(host: String)
    case removed(host: String)
}

extension RecordKeeper {
    func note(_ record: HostRecord) {
        let text = { (text: String) in JSON.string(RecordKeeper.bounded(text)) }
        switch record {
        case .joined(let name, let owner):
            audit.write("vault_joined", JSONObject([.init("host", text(name)), .init("owner", text(owner))]))
        case .invited(let role, let seconds):
            audit.write("host_invited", JSONObject([.init("role", text(role)), .init("seconds", .integer(seconds))]))
        case .gaveKey(let host): audit.write("key_shared", JSONObject([.init("host", text(host))]))
        case .removed(let host): audit.write("host_removed", JSONObject([.init("host", text(host))]))
        }
    }
}
