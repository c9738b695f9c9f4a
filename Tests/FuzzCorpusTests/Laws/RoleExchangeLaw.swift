import Adapters
import Secrets
import StrictJSON

/// What a token service answers to an exchange for credentials of a role. The first line is the HTTP status.
enum RoleExchangeLaw {
    static func check(_ bytes: [UInt8]) throws {
        let (line, body) = bytes.headLineAndRest
        let status = Int(line) ?? 200
        let read = Result { () throws(RoleExchange.Failure) in
            try RoleExchange.credentials(in: body, status: status)
        }
        switch read {
        case .success(let credentials): try checkAnswer(credentials, status)
        case .failure(let failure): try checkFailure(failure, status)
        }
    }

    private static func checkAnswer(_ credentials: RoleCredentials, _ status: Int) throws {
        try hold("only a success has credentials", status == 200)
        let answer = credentials.processAnswer
        try hold("an answer is one line", answer.count { $0 == 0x0A } == 1 && answer.last == 0x0A)
        let json = try JSON(parsing: answer)
        for (name, value) in [
            ("AccessKeyId", credentials.accessKeyID), ("SecretAccessKey", credentials.secretAccessKey.revealed()),
            ("SessionToken", credentials.sessionToken.revealed()),
        ] {
            try hold("each value is there", !value.isEmpty && json[name]?.string == value)
            try hold("each value is printable, without spaces", value.utf8.allSatisfy { (0x21...0x7E).contains($0) })
        }
    }

    private static func checkFailure(_ failure: RoleExchange.Failure, _ status: Int) throws {
        switch failure {
        case .refused(let code, let message):
            try hold("a code is a word", (1...64).contains(code.utf8.count) && !code.contains(" "))
            try hold("code and message are printable", code.isPrintableASCII && (message ?? "").isPrintableASCII)
            try hold("a message is short", (message ?? "").utf8.count <= 300)
        case .unavailable: try hold("the service failed", status >= 500)
        case .invalid(let reason): try hold("a reason is printable", reason.isPrintableASCII && !reason.isEmpty)
        }
    }
}
