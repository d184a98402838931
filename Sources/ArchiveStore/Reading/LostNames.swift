public import SystemIO

/// The names of a directory that were on pages which cannot be read: which they are nobody knows, only
/// where they lay between the others.
public struct LostNames: Hashable, Sendable {
  /// The last name before them; nothing where they are the directory's first.
  public let after: ByteString?
  /// The greatest of them.
  public let last: ByteString

  /// The names after one, or from the first on, up to another.
  public init(after: ByteString?, last: ByteString) {
    (self.after, self.last) = (after, last)
  }

  /// Whether a name may be one of them.
  public func contains(_ name: ByteString) -> Bool {
    !(last < name) && (after.map { $0 < name } ?? true)
  }

  /// These with what follows.
  func joined(with next: LostNames) -> LostNames { LostNames(after: after, last: next.last) }
}

/// Pages of a directory, one after another, that cannot be read.
struct LostPages {
  private(set) var names: LostNames
  /// Why the first of them cannot be read.
  private let cause: StoreError

  init(_ names: LostNames, _ cause: StoreError) { (self.names, self.cause) = (names, cause) }

  mutating func add(_ next: LostNames) { names = names.joined(with: next) }

  /// What is lost, and why.
  var error: StoreError {
    let from = names.after.map { "after '\($0)' " } ?? ""
    return StoreError(
      cause.code, cause.action, cause.subject,
      "a part of the directory's entries is lost, the names \(from)up to '\(names.last)': "
        + cause.reason, hint: cause.hint, cause: cause.cause)
  }
}

extension RepositoryReader {
  /// What comes next of a directory.
  struct DirectoryPart {
    /// Pages that cannot be read.
    var lost: LostPages?
    /// The page behind them, with the bytes that it takes; nothing where the directory ends.
    var page: (entries: [TreeEntry], size: Int)?
  }

  /// Reads a page, or the next one that can be read, and moves the number there. Damage to a page costs
  /// the names on it: the table of the pages still tells of the others.
  func readOn(_ number: inout Int, in directory: OpenDirectory) throws(StoreError) -> DirectoryPart
  {
    var part = DirectoryPart()
    while number < directory.pages {
      do throws(StoreError) {
        part.page = try page(number, of: directory)
        return part
      } catch {
        guard error.kind == .damaged, let names = directory.names(onPage: number) else {
          throw error
        }
        if part.lost == nil { part.lost = LostPages(names, error) } else { part.lost?.add(names) }
      }
      number += 1
    }
    return part
  }
}

extension RepositoryReader.OpenDirectory {
  /// Between which names those of a page lie, as the table of the pages has it.
  func names(onPage number: Int) -> LostNames? {
    guard case .table(let pages) = blob, number < pages.count else { return nil }
    return LostNames(after: number > 0 ? pages[number - 1].last : nil, last: pages[number].last)
  }
}
