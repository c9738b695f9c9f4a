public import BrokerCore
internal import Glibc
internal import KeptFiles
internal import RingbackBase
public import SessionVault

/// A fact with a sentence. The conformances are in this folder, one file per idea: only here are facts put into words.
protocol Sentence {
    /// For the user: one sentence or more, or the end of one that begins with a field's name.
    var sentence: String { get }
}

/// A sentence of a part above the broker that has no facts for it: the socket API's own, the configuration's, or the
/// helper's. The broker and the kinds of account cannot make one.
public struct StatedReason: KindReason, Equatable, Sentence {
    public let sentence: String
}

extension Reason {
    public static func stated(_ sentence: String) -> Reason { .kind(KindFact(StatedReason(sentence: sentence))) }
}

extension Reason: Sentence {
    /// For the user: one sentence or more, or the end of one that begins with a field's name.
    public var sentence: String {
        switch self {
        case .flow(let reason): reason.sentence
        case .request(let reason): reason.sentence
        case .session(let reason): reason.sentence
        case .account(let reason): reason.sentence
        case .provider(let reason): reason.sentence
        case .exposedSocket(let reason): reason.sentence
        case .finding(let reason): reason.sentence
        case .kind(let fact): (fact.reason as? any Sentence)?.sentence ?? ""
        case .both(let first, let second): "\(first.sentence) \(second.sentence)"
        case .vault(let error): error.sentence
        }
    }

    /// The same as the end of a sentence, with its full stop. The sentences of a further reason follow it.
    var asSentenceEnd: String {
        if case .both(let first, let second) = self { "\(first.sentence). \(second.sentence)" } else { "\(sentence)." }
    }
}

extension FileReason: Sentence {
    var sentence: String {
        switch self {
        case .folderOpenToOthers(let path, let failure):
            "\(path) is not kept: \(failure.path) \(failure.reason.sentence)."
        case .folderNotOpened(let path, let folder, let code):
            "\(path) is not kept: \(folder): \(text(ofError: code))."
        case .onDisk(let path):
            "\(path) is not kept: it would be on a disk, not in memory (tmpfs). Choose a path below "
                + "$XDG_RUNTIME_DIR, or allow it with on_disk = true."
        case .notRead(let path, let code): "\(path) cannot be read: \(text(ofError: code))."
        case .notWritten(let path, let code): "\(path) cannot be written: \(text(ofError: code))."
        case .notRemoved(let path, let code): "\(path) cannot be removed: \(text(ofError: code))."
        case .symbolicLink(let path): "\(path) is a symbolic link."
        case .notRegular(let path): "\(path) is not a regular file."
        case .ofOtherUser(let path): "\(path) belongs to another user."
        case .ofOtherProgram(let path): "\(path) was written by another program."
        case .left(let reason): "\(reason.sentence) It is neither overwritten nor removed."
        case .tooMuchScope(let name, let excess):
            "The provider of \(name) issued a token with more scope than the configuration names for the file "
                + "(\(excess.joined(separator: " ")))."
        case .tokenCharacters(let name): "The token of \(name) has characters that are not allowed in a token."
        case .typeCharacters(let name): "The type of \(name)'s token has characters that no type has."
        case .line(let cause): cause
        case .recordNotWritten(let error): "The record of the kept files cannot be written: \(error.sentence)"
        case .noIDToken(let name): "The session of \(name) has no valid ID token, and refreshes bring none."
        case .notRenewable(let name): "The token of \(name) cannot be renewed at present."
        }
    }
}

extension DirectoryTrust.Failure.Reason: Sentence {
    /// Goes on after the path, without a full stop.
    public var sentence: String {
        switch self {
        case .danglingLink: "is a link whose target does not exist. Remove it"
        case .foreignOwner(let uid):
            "belongs to uid \(uid), neither you (uid \(geteuid())) nor root, who could replace what is in it"
        case .writableByOthers: "can be written by others, who could replace what is in it"
        }
    }
}

/// The system's text for an `errno`.
func text(ofError code: Int32) -> String { unsafe String(cString: strerror(code)) }

extension ExposedSocketReason: Sentence {
    var sentence: String {
        switch self {
        case .configured(let name, let place):
            "\(name) is defined in the configuration, \(place). Choose another name."
        case .exposedAlready(let name): "\(name) is exposed already. Revoke it first."
        case .tooMany(let most): "There are \(most) exposed sockets already. Revoke one first."
        case .notRecorded(let name): "The state directory cannot be written, so \(name) was not exposed."
        case .endNotRecorded(let name):
            "\(name) is closed. But the state directory cannot be written: if the daemon ends "
                + "before it can be, its next start opens \(name) again."
        case .unknown: "Nothing is exposed under this name."
        case .closedAlready(let name): "\(name) is closed already."
        case .closed(let reason, let place): reason.sentence(at: place ?? "the configuration")
        case .unknownCause: "The cause is unknown."
        case .wrongOrder(let reason): "\(reason.sentence)."
        case .wrongMember(let member, let reason): "\(member): \(reason.sentence)"
        case .recordLost: "It is lost."
        case .recordDamaged(let place): "The file is not valid\(place.map { ". It was renamed to \($0)" } ?? "")."
        }
    }
}

extension ClosedSocket.Reason {
    fileprivate func sentence(at place: String) -> String {
        switch self {
        case .revoked: "It was revoked. It stays closed until its table is changed, at \(place)."
        case .expired: "Its time is over. It stays closed until its table is changed, at \(place)."
        case .forgotten:
            "The record of what was revoked (exposed-sockets.json in the state directory) was lost or damaged, so "
                + "this may have been revoked. It stays closed until its table is changed, at \(place)."
        case .nameTaken:
            "A socket of this name was made by a call, and stays as it was. Give the table at \(place) another name, "
                + "or revoke that socket and have the configuration read again."
        case .accountChanged:
            "An account that it showed is configured for another provider or client now. Make it anew if that is "
                + "to be shown. It is listed until it is revoked."
        case .failed: "It cannot be opened."
        }
    }
}

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

extension FindingReason: Sentence {
    var sentence: String {
        switch self {
        case .direct: "Requests of this account go to the provider without a proxy."
        case .proxied(let url, let exceptions, let isOfAll):
            (isOfAll ? "Requests to providers" : "Requests of this account") + " go through the proxy "
                + url + (exceptions.isEmpty ? "" : ", except to \(exceptions.joined(separator: ", "))")
                + ". The proxy resolves the names of providers. "
                + "Therefore the check that a URL from a provider does not lead to this machine works only for URLs "
                + "with an IP address."
        case .certificateTrusted(let host): "\(host) has a certificate that is trusted."
        case .notEncrypted(let host): "\(host) is this machine. The connection is not encrypted."
        case .noTrustedConnection(let host, let cause): "There is no trusted connection to \(host): \(cause)."
        case .wrongScheme(let host, true):
            "The server at \(host) speaks TLS: its URL begins with https://, not with http://."
        case .wrongScheme(let host, false):
            "The server at \(host) does not speak TLS. Perhaps its URL begins with http://."
        case .unreachable(let host, let cause): "\(host) cannot be reached: \(cause)."
        case .noResponse(let host, let seconds): "\(host) does not respond within \(seconds) s."
        case .badResponse(let host): "The response of \(host) is not valid HTTP, or it is too large."
        case .notChecked: "The check was not made: the daemon is shutting down."
        case .host(let host, let reason): "\(host) \(reason.sentence)."
        case .respondsWithStatus(let status): "responds with HTTP status \(status)"
        case .noTime(let host): "\(host) does not send its time."
        case .clocksAgree(let host): "The clocks of this machine and of \(host) agree."
        case .clockDiffers(let host, let seconds, let isAhead, let leeway):
            "This machine's clock is \(seconds) s \(isAhead ? "ahead of" : "behind") that of \(host): ID tokens are "
                + "rejected if the difference is more than \(leeway) s."
        case .callbackAtFreePort: "The callback arrives at a free port on 127.0.0.1."
        case .callbackIsPasted: "The callback does not arrive by itself: its URL has to be pasted."
        case .callbackAsLink(let scheme): "The callback arrives as a link of the scheme \(scheme)."
        case .callbackAtOpenScheme(let scheme):
            "The callback arrives as a link of the scheme \(scheme), which any other app may claim. A scheme after "
                + "a domain of yours, such as org.example.\(scheme), avoids that."
        case .callbackAwaited: "A sign-in is waiting for its callback now."
        case .portFree: "The port of the callback is free."
        case .portUnusable(let failure):
            "The callback cannot arrive: \(failure?.clause ?? "the listener cannot be opened")."
        }
    }
}
