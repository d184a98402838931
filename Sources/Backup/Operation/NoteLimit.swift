package import ArchiveStore
package import SystemIO

/// Limits the notes on single paths in a snapshot: a directory with a million unreadable files, or
/// half a million files excluded by a rule, must not make the snapshot too large to be read
/// (docs/repository-format.md, "Snapshot").
///
/// Notes above the limit are summarized as one for each app, group or directory. A restore with
/// `--delete` keeps everything below such a summary, so it never deletes files that were only
/// unreadable or excluded.
package enum NoteLimit {
  /// The approximate number of bytes of JSON for each kind of note.
  static let bytes = 4 << 20

  /// Returns the notes that a snapshot records.
  package static func keep(_ remarks: [PathRemark]) -> [PathNote] {
    var notes: [PathNote] = []
    var others: [ByteString: Int] = [:]
    var room = bytes
    for remark in remarks {
      // A path that is not UTF-8 is stored twice, escaped and in base64.
      room -= 5 * remark.path.count + remark.remark.utf8.count + 40
      if room >= 0 {
        notes.append(PathNote(path: remark.path, note: remark.remark))
      } else {
        others[owner(of: remark.path), default: 0] += 1
      }
    }
    notes += others.sorted { $0.key < $1.key }.map { owner, count in
      PathNote(path: owner, note: "\(count) more in it are not listed: there are too many")
    }
    return notes
  }

  /// Returns the database records that a snapshot stores.
  package static func keep(_ databases: [DatabaseRecord]) -> [DatabaseRecord] {
    let remarks = databases.map { PathRemark(path: $0.path, remark: $0.how) }
    return keep(remarks).map { DatabaseRecord(path: $0.path, how: $0.note) }
  }

  /// Returns the exclusions that a snapshot records. Those nearest to the root come first:
  /// these are the ones that a platform's rules exclude and that a restore recreates empty.
  package static func keep(_ excluded: [Exclusion]) -> [Exclusion] {
    let depths = excluded.map { left in left.path.bytes.count { $0 == UInt8(ascii: "/") } }
    let order = excluded.indices.sorted { (depths[$0], $0) < (depths[$1], $1) }
    var named: [Int] = []
    var others: [ByteString: Exclusion] = [:]
    var room = bytes
    for index in order {
      let left = excluded[index]
      room -= 5 * left.path.count + left.rule.utf8.count + 80
      if room >= 0 {
        named.append(index)
      } else {
        let owner = owner(of: left.path)
        others[owner, default: Exclusion(unnamedIn: owner)].add(left)
      }
    }
    return named.sorted().map { excluded[$0] } + others.values.sorted { $0.path < $1.path }
  }

  /// Returns the first two components of a path: `folders/notes`, `apps/org.example.notebook`.
  static func owner(of path: ByteString) -> ByteString {
    ByteString(joining: path.components.prefix(2))
  }
}

extension Exclusion {
  fileprivate init(unnamedIn path: ByteString) {
    self.init(path: path, rule: Self.unnamed, files: 0, bytes: 0)
  }

  fileprivate mutating func add(_ other: Exclusion) {
    files += other.files
    bytes.addClamping(other.bytes)
  }
}
