package import SystemIO

/// The names on unreadable pages of a directory. They are unknown except for their position among
/// the other names.
package struct UnreadableNames: Hashable, Sendable {
  /// The last name before them, or nil if they are the first in the directory.
  package let after: ByteString?
  /// The last of the lost names.
  package let last: ByteString

  /// Creates the range of names after `after`, or from the first name, up to `last`.
  package init(after: ByteString?, last: ByteString) {
    (self.after, self.last) = (after, last)
  }

  /// Whether a name may be one of the lost names.
  package func contains(_ name: ByteString) -> Bool {
    !(last < name) && (after.map { $0 < name } ?? true)
  }

  /// Returns the union with the range that follows.
  func joined(with next: UnreadableNames) -> UnreadableNames {
    UnreadableNames(after: after, last: next.last)
  }
}

/// Consecutive unreadable pages of a directory.
struct UnreadablePages {
  private(set) var names: UnreadableNames
  /// The error of the first page.
  private let cause: StoreError

  init(_ names: UnreadableNames, _ cause: StoreError) { (self.names, self.cause) = (names, cause) }

  mutating func add(_ next: UnreadableNames) { names = names.joined(with: next) }

  /// The error that describes the lost names and the cause.
  var error: StoreError {
    let from = names.after.map { "after '\($0)' " } ?? ""
    return StoreError(
      cause.code, cause.action, subject: cause.subject,
      reason: "some entries of the directory are lost, the names \(from)up to '\(names.last)': "
        + cause.reason, hint: cause.hint, cause: cause.cause)
  }
}

extension RepositoryReader {
  /// The next part of a directory.
  struct DirectoryPart {
    /// The unreadable pages.
    var lost: UnreadablePages?
    /// The page after them with its size in bytes, or nil at the end of the directory.
    var page: (entries: [TreeEntry], size: Int)?
  }

  /// Reads a page, or the next readable one, and sets `number` to it. A damaged page loses only its
  /// own names, because the page table still locates the other pages.
  func readNext(_ number: inout Int, in directory: OpenDirectory) throws(StoreError)
    -> DirectoryPart
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
        if part.lost == nil {
          part.lost = UnreadablePages(names, error)
        } else {
          part.lost?.add(names)
        }
      }
      number += 1
    }
    return part
  }
}

extension RepositoryReader.OpenDirectory {
  /// Returns the range of the names on a page according to the page table, or nil if there is no
  /// table.
  func names(onPage number: Int) -> UnreadableNames? {
    guard case .table(let pages) = blob, number < pages.count else { return nil }
    return UnreadableNames(
      after: number > 0 ? pages[number - 1].last : nil, last: pages[number].last)
  }
}
