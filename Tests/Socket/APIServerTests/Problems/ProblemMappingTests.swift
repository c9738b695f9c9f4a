import RingbackAPI
import RingbackBase
import Testing

@testable import APIServer
@testable import BrokerCore
@testable import BrokerTestSupport

@Suite struct `A problem document` {
    private static func name() -> AccountName {
        guard let name = AccountName("work") else { preconditionFailure("a good name") }
        return name
    }

    /// Every failure of the broker, the code it becomes, and what a person is told.
    static let table: [(BrokerError, ErrorCode, String?)] = [
        (.accountNotFound("x"), .accountNotFound, nil), (.flowNotFound, .flowNotFound, nil),
        (.signInRequired(name()), .signInRequired, nil),
        (.sessionRanOut(name(), advice: .any), .signInRequired, nil),
        (.sessionExpired(name()), .sessionExpired, "Session expired. Please sign in again."),
        (
            .refreshRefused(name(), host: "x", .client(code: "invalid_client", message: nil)), .refreshRefused,
            "The session cannot be renewed. Please sign in again."
        ),
        (
            .clientForgotten(name(), host: "x", code: nil, message: nil), .providerError,
            "Sign in failed. Please try again."
        ),
        (.accessDenied(name()), .accessDenied, nil), (.conflict(.any), .stateConflict, nil),
        (.invalid(field: "x", reason: .any), .validationFailed, nil),
        (.methodUnsupported(.any), .methodUnsupported, nil),
        (.portInUse(ListenerFailure(.portTaken(by: nil), port: 1)), .portInUse, nil),
        (.entranceUnavailable(ListenerFailure(.portTaken(by: nil), port: 1)), .portInUse, nil),
        (.invalidCallback(.any), .invalidCallback, "Sign in failed. Please try again."),
        (.flowEnded, .flowExpired, nil), (.flowExpired(.any), .flowExpired, "Sign in failed. Please try again."),
        (.flowCancelled(.any), .flowCancelled, nil), (.vaultLocked(.any), .vaultLocked, nil),
        (.wrongPassphrase, .invalidCredentials, nil),
        (.tooManyAttempts(retryAfter: 9), .rateLimited, "Too many attempts. Please wait a few minutes."),
        (.vaultFailed(.any), .internalError, nil),
        (
            .vaultUnreachable(.any), .vaultUnreachable, "Service temporarily unavailable. Please try again later."
        ),
        (.misconfigured(.any), .invalidConfiguration, nil),
        (.timedOut, .timeout, nil), (.cancelled, .shuttingDown, nil),
        (
            .provider(.unreachable(host: "x", reason: .any)), .providerUnreachable,
            "Connection failed. Please check your internet and try again."
        ),
        (
            .provider(.unavailable(status: 500, retryAfter: 3)), .providerUnreachable,
            "Service temporarily unavailable. Please try again later."
        ),
        (
            .provider(.rateLimited(retryAfter: nil)), .rateLimited, "Too many attempts. Please wait a few minutes."
        ),
        (.provider(.invalidResponse(.any)), .invalidProviderResponse, "Sign in failed. Please try again."),
        (
            .provider(.refused(code: "x", message: nil)), .providerError, "Sign in failed. Please try again."
        ),
        (
            .upstream(name(), .provider(.refused(code: "x", message: nil))), .providerError,
            "Sign in failed. Please try again."
        ), (.serviceRefused(name(), code: "x", message: nil), .providerError, nil),
    ]

    @Test func `a cause of a finding is one that clients know`() {
        #expect(Finding.Cause.allCases.allSatisfy { ProblemCause(rawValue: $0.rawValue) != nil })
    }

    @Test func `an odd answer on a refresh is nothing to tell a person`() {
        #expect(Problem(.provider(.invalidResponse(.any)), language: .english).userMessage == nil)
        #expect(Problem(.provider(.refused(code: "x", message: nil)), language: .english).userMessage == nil)
    }

    @Test(arguments: table.indices)
    func `each failure has one code, and the person is told by cause in two languages`(index: Int) {
        let (error, code, message) = `A problem document`.table[index]
        let english = Problem(error, language: .english, endedSignIn: true)
        #expect(english.code == code)
        #expect(english.status == ErrorCode.table[code]?.status)
        #expect(english.userMessage == message)
        let russian = Problem(error, language: .russian, endedSignIn: true)
        #expect((russian.userMessage == nil) == (message == nil))
        if let text = russian.userMessage {
            let isCyrillic = text.unicodeScalars.contains { (0x400...0x4FF).contains($0.value) }
            #expect(isCyrillic && text != message)
        }
        // What a program reads is the same in every language.
        #expect(russian.detail == english.detail)
    }

    @Test(
        arguments: [
            (nil, false), ("", false), ("en", false), ("ru", true), ("RU", true), ("ru-RU,ru;q=0.9,en;q=0.8", true),
            ("de, ru;q=0.5", true), ("en-GB,ru", false), ("de", false), ("rue", false), (" ru ", true), ("*", false),
        ] as [(String?, Bool)])
    func `the person's language is the first that we speak`(header: String?, isRussian: Bool) {
        #expect((Language(accepting: header.map { [$0] } ?? []) == .russian) == isRussian)
    }

    @Test func `a port that cannot be listened at has its host, its port and its setting`() {
        let taken = ListenerFailure(.portTaken(by: 1_001), host: "::1", port: 4_711, setting: "redirect_uri")
        let problem = Problem(.portInUse(taken), language: .english)
        #expect(problem.detail == "The callback cannot be listened for: port 4711 is in use by uid 1001.")
        #expect(JSON.object(problem.extensions) == ["host": "::1", "port": 4_711, "setting": "redirect_uri"])
        let entrance = Problem(.entranceUnavailable(ListenerFailure(.portTaken(by: nil))), language: .english)
        #expect(entrance.detail == "No address for a browser to open can be listened for: no port is free.")
        #expect(entrance.extensions.members.isEmpty)
    }

    @Test func `a Russian-speaking caller reads Russian`() async throws {
        let house = try await APIHouse()
        try await house.signIn()
        house.clock.advance(by: 3_600)
        house.provider.goAway()
        let answer = await house.ask(
            "GET", "/v1/accounts/work/session", fields: [("Accept-Language", "ru-RU,ru;q=0.9")])
        #expect(answer["user_message"] == "Нет соединения. Проверьте интернет и попробуйте снова.")
        let view = await house.ask("GET", "/v1/accounts/work", fields: [("Accept-Language", "ru")])
        #expect(view["error"]?["user_message"] == answer["user_message"])
    }
}
