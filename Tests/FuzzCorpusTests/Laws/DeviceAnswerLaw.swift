import OAuth
import RingbackBase

/// Answers to a device's requests. The first line of an input is the status, and `here` for a provider on this machine;
/// the rest is read as the codes and as the answer to a question. What a person is shown can be typed and opened, and
/// leads nobody home; "not yet" is never read out of an answer that has tokens.
enum DeviceAnswerLaw {
    static func check(_ bytes: [UInt8]) throws {
        let (line, body) = bytes.headLineAndRest
        let words = line.split(separator: " ")
        let status = words.first.flatMap { Int($0) }.map { min(max($0, 200), 599) } ?? 200
        let isHere = words.contains("here")
        let response = HTTPResponse(
            status: status, fields: HTTPFields([("Content-Type", "application/json")]), body: Secret(bytes: body))
        let endpoint = isHere ? "http://127.0.0.1:8080/device_authorization" : "https://id.example.org/device"
        if let codes = try? DeviceAuthorization(parsing: response, from: endpoint) {
            try hold("only a success has codes", (200..<300).contains(status))
            try check(codes, isHere: isHere)
        }
        guard case .waiting(let event)? = try? DeviceTokenResponse(reading: response) else { return }
        try hold("a server that is down says nothing", status < 500)
        let object = try JSON(parsing: body).object
        try hold("tokens are not waited for", object?["access_token"] == nil && object?["refresh_token"] == nil)
        let word = object?["error"]?.string
        switch event {
        case .pending: try hold("it says so", word == "authorization_pending")
        case .slowDown: try hold("it says so", word == "slow_down")
        case .unanswered: try hold("an answer is one", false)
        }
    }

    private static func check(_ codes: DeviceAuthorization, isHere: Bool) throws {
        try hold("the device code is printable", codes.deviceCode.revealed().isPrintableASCII)
        let userCode = codes.userCode
        try hold("a code can be typed", userCode.isPrintableASCII && (1...32).contains(userCode.utf8.count))
        try hold("no code is markup", !userCode.contains { "<>&\"'%=/\\".contains($0) })
        for address in [codes.verificationURI, codes.verificationURIComplete].compactMap(\.self) {
            let url = try WebURL(parsing: address)
            try hold("a page is safe to open", url.isSecure && address.utf8.count <= 2_048)
            try hold("a page at home needs a provider at home", !url.isLoopback || isHere)
        }
        try hold("codes live for a while", (1...1_800).contains(codes.expiresIn))
        try hold("nobody asks more often than every five seconds", codes.interval >= 5)
        try hold("an interval is not longer than the life", codes.interval <= max(5, codes.expiresIn))
    }
}
