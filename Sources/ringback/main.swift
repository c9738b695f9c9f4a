import ArgumentParser
import Glibc

// Reading an access token is what scripts do a hundred times a minute: its common forms are recognised by hand, and
// the general parser, with its reflection, is asked about everything else.
if let options = HotToken.recognize(CommandLine.arguments.dropFirst()) {
    exit(TokenVerb.run(options))
}
Ringback.main()
