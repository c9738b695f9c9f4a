import Glibc

/// True if all these programs are in /usr/bin.
func areInstalled(_ names: String...) -> Bool {
    names.allSatisfy { unsafe access("/usr/bin/\($0)", X_OK) == 0 }
}
