internal import SystemIO

/// The limit on remarks about single paths: a repository may have more damage, under longer names,
/// than memory holds. Remarks beyond the limit are counted and reported as one.
struct RemarkLimit {
  private var room: Int
  private(set) var others = 0

  /// The maximum size of all paths and remarks, in bytes.
  static let room = 16 << 20

  init(room: Int = Self.room) { self.room = room }

  /// Adds a remark if there is room for it.
  mutating func add(_ remark: PathRemark, to remarks: inout [PathRemark]) {
    let size = remark.path.count + remark.remark.utf8.count
    guard others == 0, size <= room else {
      others += 1
      return
    }
    room -= size
    remarks.append(remark)
  }

  /// Appends a remark with the number of omitted ones.
  func close(_ remarks: inout [PathRemark]) {
    if others == 0 { return }
    remarks.append(
      PathRemark(path: ".", remark: "\(others) more are not listed: there are too many"))
  }
}
