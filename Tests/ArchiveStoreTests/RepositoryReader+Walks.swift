import SystemIO

@testable import ArchiveStore

extension RepositoryReader {
  /// Returns the entries of a directory, sorted by the bytes of their names.
  func entries(of tree: TreeReference) throws(StoreError) -> [TreeEntry] {
    let directory = try openDirectory(tree)
    var entries: [TreeEntry] = []
    for number in 0..<directory.pages { entries += try page(number, of: directory).entries }
    return entries
  }

  /// Walks a tree up to the first damage, and throws its error.
  func walk(
    _ tree: TreeReference, budget: Int = TreeWalk.budget,
    _ body: (ByteString, TreeEntry) throws -> TreeWalk.Step
  ) throws {
    try walkPastDamage(tree, budget: budget) { path, finding in
      switch finding {
      case .entry(let entry): return try body(path, entry)
      case .damage(let error), .lost(_, let error): throw error
      }
    }
  }
}
