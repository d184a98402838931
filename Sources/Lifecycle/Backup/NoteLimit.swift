internal import ArchiveStore
internal import SystemIO

/// What a snapshot says of single paths, as far as it has room: a directory of a million files that
/// nobody may read, or of half a million that a rule leaves out, must not make a snapshot that nobody
/// can read (docs/repository-format.md, "Snapshot").
///
/// Those that are too many are told of as one for each app, group or directory. So a restore with
/// `--delete` still takes nothing for gone that was only unreadable or left out: it spares all of that.
enum NoteLimit {
  /// About so many bytes of JSON for each kind of them.
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

  /// How databases were captured, as far as a snapshot gets it.
  static func keep(_ databases: [DatabaseRecord]) -> [DatabaseRecord] {
    let remarks = databases.map { PathRemark(path: $0.path, remark: $0.how) }
    return keep(remarks).map { DatabaseRecord(path: $0.path, how: $0.note) }
  }

  /// What was left out, as far as a snapshot gets it: first what lies nearest to the top, which is what a
  /// platform's rules leave out and what a restore makes anew as an empty directory.
  static func keep(_ excluded: [Exclusion]) -> [Exclusion] {
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

  /// `folders/notes`, `apps/org.example.notebook`: the first two names of a path.
  static func owner(of path: ByteString) -> ByteString {
    path.components.prefix(2).reduce("") { $0.appending($1) }
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
