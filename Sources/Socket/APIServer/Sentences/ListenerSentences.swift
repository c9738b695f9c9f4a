internal import BrokerCore
internal import Glibc
internal import StrictJSON

extension ListenerFailure {
    /// Why there is no listener, as a part of a sentence.
    var clause: String {
        switch cause {
        case .portTaken(let holder):
            let who = holder.map { $0 == getuid() ? " by a program of yours" : " by uid \($0)" } ?? ""
            return port.map { "port \($0) is in use\(who)" } ?? "no port is free"
        case .system(let call, EACCES): return "the port may not be used by this user (\(call)); configure another one"
        case .system(let call, let code): return "\(unsafe String(cString: strerror(code))) (\(call))"
        case .unsuitable(let reason):
            let sentence = reason.sentence
            return sentence.hasSuffix(".") ? String(sentence.dropLast()) : sentence
        }
    }

    /// The members of a problem document.
    var members: JSONObject {
        var members = JSONObject()
        members["host"] = host.map { .string($0) }
        members["port"] = port.map { .integer($0) }
        members["setting"] = setting.map { .string($0) }
        return members
    }
}
