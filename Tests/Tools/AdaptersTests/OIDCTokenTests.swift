import Testing

@testable import Adapters

/// What oidc-token 4.2.6 did with the same words, by hand and in `the real oidc-token` of the house tests.
@Suite struct `The command line of oidc-token` {
    private let facts: OIDCToken.Facts = (token: "at.x-y", issuer: "https://id.example.org/", expiresAt: 1_795_388_040)

    private func answer(_ words: String) throws -> String {
        let arguments = words.split(separator: " ").map(String.init)
        return String(decoding: try OIDCToken(arguments).answer(facts), as: UTF8.self)
    }

    private static let outputs: [(String, String)] = [
        ("work", "at.x-y\n"), ("-o work", "at.x-y\n"), ("-e work", "1795388040\n"),
        ("-i work", "https://id.example.org/\n"),
        ("-a work", "at.x-y\nhttps://id.example.org/\n1795388040\n"),
        ("work -a", "at.x-y\nhttps://id.example.org/\n1795388040\n"),
        ("-eX work -a", "at.x-y\nhttps://id.example.org/\n1795388040\n"),
        (
            "-c work",
            "OIDC_AT=at.x-y; export OIDC_AT;\nOIDC_ISS=https://id.example.org/; export OIDC_ISS;\n"
                + "OIDC_EXP=1795388040; export OIDC_EXP;\n"
        ),
        // The rest of the word is the variable's name.
        ("-oie work", "ie=at.x-y; export ie;\n"), ("-eX work", "X=1795388040; export X;\n"),
        (
            "-iX -e work",
            "X=https://id.example.org/; export X;\nOIDC_EXP=1795388040; export OIDC_EXP;\n"
        ),
        ("--issuer=ISS work", "ISS=https://id.example.org/; export ISS;\n"),
        ("--token=T --expires-at work", "T=at.x-y; export T;\nOIDC_EXP=1795388040; export OIDC_EXP;\n"),
        ("--id-token -c work", "at.x-y\n"), ("-- work", "at.x-y\n"), ("--name=n --seccomp work", "at.x-y\n"),
    ]

    @Test(arguments: outputs) func `prints what that program prints`(words: String, expected: String) throws {
        #expect(try answer(words) == expected)
    }

    @Test func `reads what is asked for`() throws {
        let read = try OIDCToken([
            "-fs", "email", "--scope=a b", "--tim=5", "--aud", "x", "-t60", "https://id.example.org",
        ])
        #expect(read.scope == "email a b" && read.minValid == 60 && read.audience == "x" && read.isForced)
        #expect(read.account == .issuer("https://id.example.org") && read.page == nil)
        #expect(try OIDCToken(["work"]).account == .name("work"))
        #expect(try OIDCToken(["--id-token", "work"]).isIDToken)
        #expect(try [["-?"], ["--help"], ["--he"]].allSatisfy { try OIDCToken($0).page == .help })
        #expect(try OIDCToken(["--usage"]).page == .usage && OIDCToken(["-V"]).page == .version)
    }

    @Test(
        arguments: [
            [], [""], ["work", "extra"], ["-z", "work"], ["--nothing", "work"], ["-t"], ["-t", "-5", "work"],
            ["--time=abc", "work"], ["--all=1", "work"], ["--i", "work"], ["-o1x", "work"], ["-oa;b", "work"],
            ["--token=", "work"], ["--issuer=a b", "work"], ["--expires-at=é", "work"], ["--", "-a", "work"],
        ])
    func `refuses what that program refuses, and variables that are none`(arguments: [String]) {
        #expect(throws: AdapterFailure.self) { try OIDCToken(arguments) }
    }

    @Test(arguments: ["", "a b", "a\nb", "é", "a\u{7F}"]) func `a token that is none is not given`(token: String) throws
    {
        let facts: OIDCToken.Facts = (token: token, issuer: "https://id.example.org", expiresAt: nil)
        #expect(throws: AdapterFailure.self) { try OIDCToken(["work"]).answer(facts) }
    }

    @Test func `a value with characters of a shell is quoted, and a missing expiry is 0`() throws {
        let facts: OIDCToken.Facts = (token: "a'$(b)", issuer: "https://id.example.org", expiresAt: nil)
        let text = String(decoding: try OIDCToken(["-oA", "-eB", "work"]).answer(facts), as: UTF8.self)
        #expect(text == "A='a'\\''$(b)'; export A;\nB=0; export B;\n")
    }

    private static let cases = AdapterCase.all(in: "oidc-token")

    @Test(arguments: cases) func `is read as its case says`(_ example: AdapterCase) throws {
        let words = example.input.split(separator: 0x0A, omittingEmptySubsequences: false)
            .map { String(decoding: $0, as: UTF8.self) }
        guard example.head["refused"] == nil else {
            let error = try #require(throws: AdapterFailure.self) { try OIDCToken(words) }
            // What is said on a terminal has nothing of the arguments.
            #expect(error.reason.utf8.allSatisfy { (0x20...0x7E).contains($0) } && error.reason.utf8.count < 100)
            return
        }
        let read = try OIDCToken(words)
        let account: OIDCToken.Account? =
            example.head["account"].map { .name($0) } ?? example.head["issuer"].map { .issuer($0) }
        #expect(read.account == account && read.scope == example.head["scope"])
        #expect(read.audience == example.head["audience"] && read.minValid == example.head["min"].flatMap { Int($0) })
        let facts: OIDCToken.Facts = (token: "t0ken", issuer: "https://id.example.org", expiresAt: 1_800_000_000)
        let answer = try #require(example.head["answer"]?.replacing("|", with: "\n"))
        #expect(String(decoding: try read.answer(facts), as: UTF8.self) == answer + "\n")
    }
}
