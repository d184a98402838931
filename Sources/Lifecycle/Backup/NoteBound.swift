internal import ArchiveStore
internal import SystemIO

/// What a snapshot says of single paths, as far as it has room: a folder of a million files that
/// nobody may read must not make a snapshot that nobody can read (docs/repository-format.md,
/// "Snapshot").
///
/// Those that are too many are told of as one for each app, group or folder. So a restore with
/// `--delete` still takes nothing for gone that was only unreadable: it spares all of that.
enum NoteBound {
  /// About so many bytes of JSON.
  static let bytes = 4 << 20

  /// The notes that a snapshot gets.
  static func keep(_ remarks: [PathRemark]) -> [PathNote] {
    var notes: [PathNote] = []
    var others: [ByteString: Int] = [:]
    var room = bytes
    for remark in remarks {
      // What is not UTF-8 stands there twice, escaped and in base64.
      room -= 5 * remark.path.count + remark.remark.utf8.count + 40
      if room >= 0 {
        notes.append(PathNote(path: remark.path, note: remark.remark))
      } else {
        others[owner(of: remark.path), default: 0] += 1
      }
    }
    notes += others.sorted { $0.key < $1.key }.map { owner, count in
      PathNote(path: owner, note: "\(count) more in it are not named: there are too many")
    }
    return notes
  }

  /// `folders/notes`, `apps/org.example.notebook`: the first two names of a path.
  private static func owner(of path: ByteString) -> ByteString {
    path.components.prefix(2).reduce("") { $0.appending($1) }
  }
}
