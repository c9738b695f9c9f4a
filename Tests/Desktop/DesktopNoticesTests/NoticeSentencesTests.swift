import BrokerCore
import Desktop
import Glibc
import RingbackBase
import Testing

@testable import DesktopNotices

@Suite struct `The sentences of notices` {
    private static let git = ProgramIdentity(executable: "/usr/bin/git", isRootOwned: true)
    /// Those that are of no account.
    private static let ofNone: [NoticeSubject] = [.linkUnusable, .consentsFlooded(by: git)]
    private static let all: [NoticeSubject] = [
        .signInWanted(by: nil), .signInWanted(by: "git"), .sessionEnding(at: WallInstant(seconds: 1_800_003_600)),
        .sessionEnded, .signedIn(as: "ada"), .signedIn(as: nil),
        .signInFailed(message: "No."), .signInFailed(message: nil), .pageNotOpened, .linkUnusable,
        .changeConfirmed(message: "Check."), .changeConfirmed(message: nil), .tokensRefused(by: "git.example.org"),
        .accountUsed(by: git), .consentWanted(.token, scope: "email", by: git),
        .consentWanted(.exposedSocket, scope: nil, by: git), .consentsFlooded(by: git),
    ]

    private func sentences(_ language: Language) -> NoticeSentences {
        NoticeSentences(language: language, now: { WallInstant(seconds: 1_800_000_000) })
    }

    @Test(arguments: all) func `are English and Russian`(subject: NoticeSubject) {
        let english = sentences(.english).notice(subject, "work")
        let russian = sentences(.russian).notice(subject, "work")
        #expect(english.summary != russian.summary)
        #expect(english.summary.utf8.allSatisfy { $0 < 0x80 } && !russian.summary.utf8.allSatisfy { $0 < 0x80 })
        if !Self.ofNone.contains(subject) {
            #expect(english.summary.contains("work") && russian.summary.contains("work"))
        }
        #expect(english.actions.map(\.key) == russian.actions.map(\.key))
    }

    @Test(arguments: [
        (["LANG": "ru_RU.UTF-8"], true), (["LANG": "en_US.UTF-8"], false), ([:], false), (["LANG": "C.UTF-8"], false),
        (["LC_ALL": "ru_RU.UTF-8", "LANG": "de_DE"], true), (["LC_MESSAGES": "ru", "LANG": "en_GB"], true),
        (["LC_ALL": "C", "LANG": "ru_RU"], false), (["LC_ALL": "", "LANG": "ru_RU"], true),
    ])
    func `are those of the person's locale`(environment: [String: String], isRussian: Bool) {
        #expect(Language(environment: environment) == (isRussian ? .russian : .english))
    }

    @Test func `name the program that waits, if it has told its name`() {
        let english = sentences(.english)
        #expect(english.notice(.signInWanted(by: "git"), "work").body == "git is waiting for this account.")
        #expect(english.notice(.signInWanted(by: nil), "work").body == "A program is waiting for this account.")
        let sentence = english.notice(.signInWanted(by: "Run: curl x|sh, it"), "work").body
        #expect(sentence == "A program is waiting for this account.")
        #expect(sentences(.russian).notice(.signInWanted(by: "git"), "work").body == "Этой учётной записи ждёт git.")
    }

    @Test func `name a program by its quoted path, and say whether the user can change the file`() {
        let own = ProgramIdentity(executable: "/home/ada/x\n\u{202E}y")
        let wanted = NoticeSubject.consentWanted(.token, scope: nil, by: own)
        let body = sentences(.english).notice(wanted, "work").body
        #expect(body == #""/home/ada/x\n\u202ey" (this file can be changed by you)."#)
        #expect(sentences(.english).notice(.accountUsed(by: Self.git), "work").body == #""/usr/bin/git"."#)
        #expect(sentences(.russian).notice(wanted, "work").body.hasSuffix("(вы можете изменить этот файл)."))
    }

    @Test func `SC-11: hold a person's name as one line that stays where it is`() {
        #expect(NoticeSentences.plain("Ada\u{202E}\u{1B}[31m\n\u{2028}Lovelace\u{200B}") == "Ada[31mLovelace")
        #expect(NoticeSentences.plain("Ада Лавлейс 👩‍💻").hasPrefix("Ада Лавлейс 👩"))
        #expect(NoticeSentences.plain(String(repeating: "x", count: 500)) == String(repeating: "x", count: 80) + "…")
    }

    @Test(arguments: all) func `call an account by its label, and name it in commands`(subject: NoticeSubject) {
        let label = "Swisscoin (id.example.org)"
        for sentences in [sentences(.english), sentences(.russian)] {
            let notice = sentences.notice(subject, "work", label: label)
            if !Self.ofNone.contains(subject) { #expect(notice.summary.contains(label)) }
            let body = notice.bodyWithoutActions ?? notice.body
            #expect(!body.contains("ringback login") || body.contains("ringback login work"))
        }
    }

    @Test func `say when a session ends by the clock on the wall`() {
        func local(_ instant: WallInstant) -> (hour: Int32, minute: Int32) {
            var seconds = time_t(instant.seconds)
            var parts = unsafe tm()
            _ = unsafe localtime_r(&seconds, &parts)
            return unsafe (parts.tm_hour, parts.tm_min)
        }
        let end = WallInstant(seconds: 1_800_000_060)
        let clock = local(end)
        func two(_ number: Int32) -> String { number < 10 ? "0\(number)" : "\(number)" }
        let notice = sentences(.english).notice(.sessionEnding(at: end), "work")
        #expect(notice.body.contains("\(two(clock.hour)):\(two(clock.minute))"))
        let later = sentences(.english).notice(.sessionEnding(at: end + .seconds(40 * 86_400)), "work")
        #expect(later.body.contains("2027-02-2"))
    }
}
