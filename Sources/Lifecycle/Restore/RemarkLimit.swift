internal import SystemIO

/// How much is said of single paths: a repository may have more damage, under longer names, than memory
/// holds. What is too much is counted, and told of as one.
struct RemarkLimit {
  private var room: Int
  private(set) var others = 0

  /// Bytes of the paths and of what is said of them.
  static let room = 16 << 20

  init(room: Int = Self.room) { self.room = room }

  /// Adds a remark where there is room for it.
  mutating func add(_ remark: PathRemark, to remarks: inout [PathRemark]) {
    let size = remark.path.count + remark.remark.utf8.count
    guard others == 0, size <= room else {
      others += 1
      return
    }
    room -= size
    remarks.append(remark)
  }

  /// Says how many more there were.
  func close(_ remarks: inout [PathRemark]) {
    if others == 0 { return }
    remarks.append(
      PathRemark(path: ".", remark: "\(others) more are not named: there are too many"))
  }
}
