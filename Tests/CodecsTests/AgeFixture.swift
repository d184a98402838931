import Foundation
import Testing

@testable import Codecs

/// Identities, passphrases and files that several tests of age use.
enum AgeFixture {
  /// The example identity and recipient of the specification.
  static let identity = "AGE-SECRET-KEY-1GFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPQ4EGAEX"
  static let recipient = "age1zvkyg2lqzraa2lnjvqej32nkuu0ues2s82hzrye869xeexvn73equnujwj"

  /// Identities made by age-keygen 1.1.1, with their recipients, and files that age 1.1.1 encrypted
  /// for both, and with a passphrase.
  static let first = "AGE-SECRET-KEY-1DNJT0S7D5FAWDFYXQAUU2QXNT0KVCY08M5X54F5JMF3V8NVFNFESUKNZ3N"
  static let firstRecipient = "age16yh0jwqdr376u8qf360l6gtg45zphcu0hr2qsrfl59x0jhtdscpqydf66y"
  static let second = "AGE-SECRET-KEY-1D7722Q46CS7FTKUFUXVJ8DFELM3W4FT5EM3E0GRQ553PCFQ88ASQPMZ6EN"
  static let secondRecipient = "age1859ahtaw3xmzewfqm0n5je708kvcmfxahuhns5h0thqcfkt6avysqppcew"
  static let plain = "written by age 1.1.1\n"
  static let forBoth = """
    -----BEGIN AGE ENCRYPTED FILE-----
    YWdlLWVuY3J5cHRpb24ub3JnL3YxCi0+IFgyNTUxOSBJTzVsWVN0bHQ0U1NqTWcy
    Ri9sRW1qZkI4YkJYcDdFYnI5cFBjbkRDRTJzCktMYXFUalVDMXd0TERId2VxQks5
    VFZmcWtGNEVFR01NV0c2VFZhbkVvYlUKLT4gWDI1NTE5IEhBd1RBUXk5eWtleStW
    c0dQUkk2UGpwYzlaRzArcnJxNDRudHFJcVNqRTQKNW1NSTlXVVVrcUg2MWNjS0Np
    dDdiZTlKSXExZms1SnNITGxzU28rYXZORQotLS0gM2xHVE1VN2JMSDdkV3FVekJp
    NTdDVDZzTVlITUZwOUxWY1hmYnNIcWw0NAr6Ag0fQlYjMfCpfYUvjQYsDQWM+9Pm
    FsybJefhfINH3CTECLWRt3iaQUE9bGuxKblasQotEg==
    -----END AGE ENCRYPTED FILE-----
    """
  static let passphrase = "correct horse"
  static let forPassphrase = """
    -----BEGIN AGE ENCRYPTED FILE-----
    YWdlLWVuY3J5cHRpb24ub3JnL3YxCi0+IHNjcnlwdCArZm5kZkZrbjF6OW13ZFlX
    WXA3U0R3IDE4Ci9Zd1QvQ0o4UWlYRTZLcHFtVlZSK1IrZzNoQ3pPNk51VGU5VEY0
    VHRYRE0KLS0tIGg1M3duM0ZGMXAwUVdmWWVqTjZNQ1FyS1NDaGZFODVReSt6dFpt
    N2tSR2sKlhdPXIql2IPzt5A57oxD/U5CqOJnc8OryqpnKAGogXT+7dfyLdToU2xz
    Ogg//0l85/atqdo=
    -----END AGE ENCRYPTED FILE-----
    """

  /// Returns an identity from its text.
  static func key(_ text: String) throws(AgeError) -> AgeIdentity {
    try AgeIdentity(Array(text.utf8).span)
  }

  /// Returns the text of an identity.
  static func text(_ identity: AgeIdentity) -> String {
    identity.text().withBytes { text in
      String(decoding: text.indices.map { text[$0] }, as: UTF8.self)
    }
  }

  /// Returns a passphrase from its text.
  static func passphrase(_ text: String) throws(AgeError) -> AgePassphrase {
    try AgePassphrase(Array(text.utf8).span)
  }

  /// Decrypts a complete file in memory.
  static func decrypt(_ file: [UInt8], with identities: [AgeIdentity]) throws(AgeError) -> [UInt8] {
    try AgeFile(opening: file.span, with: identities).decrypt(file.span)
  }

  /// Decrypts a complete file in memory.
  static func decrypt(_ file: [UInt8], with passphrase: AgePassphrase) throws(AgeError) -> [UInt8] {
    try AgeFile(opening: file.span, with: passphrase).decrypt(file.span)
  }

  /// Returns the error of a call. The test fails if there is none.
  static func refusal<Value>(
    _ body: () throws(AgeError) -> Value, at location: SourceLocation = #_sourceLocation
  ) -> AgeError? {
    do throws(AgeError) {
      _ = try body()
      Issue.record("no error", sourceLocation: location)
      return nil
    } catch {
      return error
    }
  }
}
