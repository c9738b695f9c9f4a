internal import StrictJSON

/// What an issuer has done so far, for tests that must prove that something happened once, or not at all.
struct Counters {
    /// By endpoint.
    var requests: [String: Int] = [:]
    /// Token requests by grant type, refused ones included.
    var tokenRequests: [String: Int] = [:]
    var signIns = 0
    var denials = 0
    var codesIssued = 0
    var codeReuses = 0
    var tokensIssued = 0
    var refreshes = 0
    var rotations = 0
    /// Rotations whose response was passed on completely to be sent: no fault of this sandbox kept it back.
    var rotationsAnswered = 0
    var reuseDetections = 0
    var revocations = 0
    var endedSessions = 0
    var deviceCodesIssued = 0
    /// Token requests of devices that came before their interval had passed.
    var earlyDeviceQuestions = 0
    var registrations = 0
    var registrationsDeleted = 0

    var json: JSON {
        func object(_ counts: [String: Int]) -> JSON {
            .object(JSONObject(counts.sorted { $0.key < $1.key }.map { .init($0.key, .integer($0.value)) }))
        }
        var every = requests
        for endpoint in Endpoint.allCases { every[endpoint.rawValue, default: 0] += 0 }
        return [
            "requests": object(every), "token_requests": object(tokenRequests), "sign_ins": .integer(signIns),
            "denials": .integer(denials), "codes_issued": .integer(codesIssued), "code_reuses": .integer(codeReuses),
            "tokens_issued": .integer(tokensIssued), "refreshes": .integer(refreshes),
            "rotations": .integer(rotations), "rotations_answered": .integer(rotationsAnswered),
            "reuse_detections": .integer(reuseDetections),
            "revocations": .integer(revocations), "ended_sessions": .integer(endedSessions),
            "device_codes_issued": .integer(deviceCodesIssued),
            "early_device_questions": .integer(earlyDeviceQuestions),
            "registrations": .integer(registrations), "registrations_deleted": .integer(registrationsDeleted),
        ]
    }
}
