internal import Codecs
internal import SystemIO

/// The location of a repository under which this host records what it knows about the repository.
struct RecordedLocation {
  /// The real path of a directory, and the text of any other location with the server of a bucket.
  let text: ByteString
  /// The text that earlier versions recorded for it; nil if it is the same. It lacks the server
  /// that the environment or a profile names, so several stores may share its records.
  let earlier: ByteString?

  init(_ text: ByteString, earlier: ByteString? = nil) {
    (self.text, self.earlier) = (text, earlier == text ? nil : earlier)
  }

  /// The name of its record.
  var recordName: ByteString { Self.name(of: text) }

  /// The names of the records that apply to it; the first existing one is used. That of an earlier
  /// version protects the repository until there is one for this server.
  var recordNames: [ByteString] { [recordName] + (earlier.map { [Self.name(of: $0)] } ?? []) }

  private static func name(of text: ByteString) -> ByteString {
    ByteString("at-\(Blake2b.hash(Array(text.bytes)).hex).txt")
  }
}
