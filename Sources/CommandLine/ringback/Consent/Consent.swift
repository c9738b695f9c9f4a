import ArgumentParser
import RingbackAPI
import RingbackBase
import RingbackClient
import Terminal

struct ConsentVerbs: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "consent", abstract: "Answer the programs that ask for an account, and see what was decided.",
        discussion: """
            For accounts with consent = "ask". ringback consent asks on the terminal about each program that waits. \
            The answer is refused from the application or terminal in which the program runs.
            """,
        subcommands: [ConsentReview.self, ConsentList.self, ConsentAllow.self, ConsentDeny.self, ConsentForget.self],
        defaultSubcommand: ConsentReview.self)
}

struct ConsentReview: DaemonVerb {
    static let configuration = CommandConfiguration(
        commandName: "review", abstract: "Answer each open question (review may be left out).")

    @OptionGroup var options: CallOptions

    private static let answers: [(label: String, body: JSONObject?)] = [
        ("Allow once", ["decision": "allow", "remember": "once"]),
        ("Allow until this terminal or application ends", ["decision": "allow", "remember": "session"]),
        // Where nobody but root can change the file.
        ("Allow always", ["decision": "allow", "remember": "always"]),
        ("Deny", ["decision": "deny"]), ("Answer later", nil),
    ]

    func run() throws {
        let calls = try daemon.interruptibleCalls()
        let open = try calls.call(.listConsentQuestions).list("consents")
        guard !json.isWanted, Questions.arePossible, !open.isEmpty else {
            return try ConsentList.show(calls, json)
        }
        let questions = Questions(ending: "The question stays open.")
        for question in open {
            Output.note(ConsentList.sentence(question))
            let isChangeable = question["program"]?.isTrue("changeable") ?? true
            let answers = ConsentReview.answers.filter { !isChangeable || $0.body?["remember"] != "always" }
            let choice = try questions.choose("Your answer", among: answers.map(\.label))
            guard let body = answers[choice].body else { continue }
            let id = question.text("id")
            guard try ignoring(.notFound, call: calls.call(.answerConsent, [id], body: .object(body))) != nil else {
                Output.note("The program does not wait any more. Nothing was decided.")
                continue
            }
            Output.line(ConsentAnswer.line(body["decision"] == "allow", question))
        }
    }
}

struct ConsentList: DaemonVerb {
    static let configuration = CommandConfiguration(
        commandName: "list", abstract: "List the open questions, and the decisions that are remembered.")

    @OptionGroup var options: CallOptions

    func run() throws { try ConsentList.show(daemon.calls(), json) }

    static func show(_ calls: BrokerCalls, _ json: JSONOption) throws(RingbackError) {
        let open = try calls.call(.listConsentQuestions)
        let remembered = try calls.call(.listRememberedConsents)
        guard !json.isWanted else {
            return Output.object(["open": open.list("consents"), "remembered": remembered.list("consents")])
        }
        for question in open.list("consents") {
            Output.line("\(question.shown("id"))  \(sentence(question))")
        }
        try json.printList(
            remembered, "consents", ["ID", "ACCOUNT", "DECISION", "FOR", "UNTIL", "PROGRAM"],
            none: open.list("consents").isEmpty
                ? "No program waits for an answer, and none is remembered." : "Nothing is remembered.",
            cells)
    }

    static func sentence(_ question: JSON) -> String {
        let program = question["program"]?.text("text") ?? ""
        let use =
            question["operation"] == "exposed_socket"
            ? "wants to show the account to other programs" : "wants to use the account"
        let scope = question["scope"]?.string.map { ", with the scope \($0)" } ?? ""
        return Sanitizer.line("\(question.text("account")): \(program) \(use)\(scope).", limit: 4_000)
    }

    private static func cells(_ consent: JSON) -> [String] {
        [
            consent.text("id"), consent.text("account"), consent.text("decision"),
            consent["operation"] == "exposed_socket" ? "exposed sockets" : "tokens",
            consent["expires_at"]?.integer.map(TimeText.dateAndTime)
                ?? (consent["remember"] == "always" ? "always" : "the session ends"),
            consent.shown("executable"),
        ]
    }
}

/// The answer to one question.
struct ConsentAnswer: ParsableArguments {
    @Argument(help: "The question, from ringback consent list.") var id: String

    @Option(help: .value("span", "once (the default), session, always, or a span such as 8h within the session."))
    var remember = "once"

    @OptionGroup var options: CallOptions

    func give(_ decision: String) throws {
        try require(ConsentForget.isID(id), "A question's id has eight digits and letters.")
        let answer = try options.daemon.calls().call(
            .answerConsent, [id], body: ["decision": .string(decision), "remember": .string(remember)])
        options.json.print(answer, or: ConsentAnswer.line(answer["decision"] == "allow", answer))
    }

    static func line(_ isAllowed: Bool, _ question: JSON) -> String {
        "\(isAllowed ? "Allowed" : "Denied"): \(question.shown("account"))"
    }
}

struct ConsentAllow: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "allow", abstract: "Allow what a program asks for. Needs a terminal.")

    @OptionGroup var answer: ConsentAnswer

    func run() throws {
        guard Questions.arePossible else {
            throw RingbackError(.cancelled, "Nothing was allowed: only a user at a terminal may allow something.")
        }
        try answer.give("allow")
    }
}

struct ConsentDeny: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "deny", abstract: "Deny what a program asks for. It is not asked about again for five minutes.")

    @OptionGroup var answer: ConsentAnswer

    func run() throws { try answer.give("deny") }
}

struct ConsentForget: DaemonVerb {
    static let configuration = CommandConfiguration(
        commandName: "forget", abstract: "Forget a decision: the program is asked about again. Needs a terminal.")

    @Argument(help: "The decision, from ringback consent list.") var id: String
    @OptionGroup var options: CallOptions

    static func isID(_ text: String) -> Bool {
        text.utf8.count == 8 && text.utf8.allSatisfy { $0.hexValue != nil }
    }

    func run() throws {
        try require(ConsentForget.isID(id), "A decision's id has eight digits and letters.")
        guard Questions.arePossible else {
            throw RingbackError(.cancelled, "Nothing was forgotten: only a user at a terminal may forget a decision.")
        }
        let answer = try daemon.calls().call(.forgetConsent, [id])
        json.print(answer, or: "Forgotten: \(answer.shown("executable")) and \(answer.shown("account"))")
    }
}
