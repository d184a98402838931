internal import SystemIO

/// Collects notes on paths. Above about 4 MiB of JSON they are summarized as one for each app,
/// group or directory, so that the snapshot stays small enough to be read.
package struct LimitedNotes {
  /// The approximate number of bytes of JSON for each kind of note.
  package static let bytes = 4 << 20

  private var named: [PathNote] = []
  /// The number of other notes by the subject of their paths.
  private var others: [ByteString: Int] = [:]
  private var room = bytes
  /// The number of notes that were added.
  package private(set) var count = 0

  /// Creates an empty collection.
  package init() {}

  /// Adds a note.
  package mutating func add(_ note: PathNote) {
    count += 1
    // A path that is not UTF-8 is stored twice, escaped and in base64.
    room -= 5 * note.path.count + note.note.utf8.count + 40
    if room >= 0 {
      named.append(note)
    } else {
      others[note.path.subject, default: 0] += 1
    }
  }

  /// The notes in the order in which they were added, then the summaries.
  package var notes: [PathNote] {
    named
      + others.sorted { $0.key < $1.key }.map { owner, count in
        PathNote(path: owner, note: "\(count) more in it are not listed: there are too many")
      }
  }
}
