package import ArchiveStore
internal import Codecs
package import SystemIO

extension S3Storage {
  /// The objects of a page; the maximum that stores return.
  private static let pageSize = 1000
  /// The maximum number of consecutive pages without an object.
  private static let emptyPages = 100

  /// Returns the next components of all keys below a directory, sorted by bytes.
  package func list(_ directory: ObjectPath) throws(StoreError) -> [ByteString] {
    let below = keys(below: directory)
    var names: [ByteString] = []
    try forEachPage(below, delimiter: "/", of: directory) { page in
      // The object whose key is the prefix itself stands for a directory in some programs.
      names += page.objects.map(\.key).filter { $0 != below }.map { name($0, below) }
      names += page.prefixes.map { name($0, below) }
      return true
    }
    return names.sorted()
  }

  /// Lists directories, several at the same time.
  package func listAll(_ directories: [ObjectPath]) throws(StoreError) -> [DirectoryListing?] {
    try atOnce(directories) { directory throws(StoreError) in
      DirectoryListing(names: try self.list(directory))
    }
  }

  /// Returns the part of a key after a prefix, without a delimiter at its end.
  private func name(_ key: ByteString, _ prefix: ByteString) -> ByteString {
    let rest = key.bytes.dropFirst(prefix.count)
    return ByteString(rest.last == ByteString.slash ? rest.dropLast() : rest)
  }

  /// Calls `body` for each object below a directory, one page at a time, in the order of the keys.
  package func forEachObject(
    below directory: ObjectPath, _ body: (ObjectPath, ObjectStatus) throws(StoreError) -> Void
  ) throws(StoreError) {
    let below = keys(below: directory)
    try forEachPage(below, of: directory) { page throws(StoreError) in
      for object in page.objects {
        guard let path = path(object.key, in: directory, below) else { continue }
        try body(path, object.status)
      }
      return true
    }
  }

  /// Calls `body` for each object below several directories. Objects whose keys are between theirs
  /// are listed with them if that needs no further page, so that directories with little between
  /// them cost one request.
  ///
  /// A listing begins after the first directory's prefix, and ends after the page that leads beyond
  /// the last one. If a page ends between two directories, the next listing begins with the second
  /// one: so there are never more requests than for the directories one by one.
  package func forEachObject(
    belowAny directories: [ObjectPath],
    _ body: (ObjectPath, ObjectStatus) throws(StoreError) -> Void
  ) throws(StoreError) {
    var rest = outermost(directories)[...]
    let root = keys(below: .root)
    while let first = rest.first {
      var begins = beginsAnywhere
      if begins {
        begins = try forEachPage(root, after: first.prefix, of: first.path) {
          page throws(StoreError) in
          for object in page.objects {
            guard let found = rest.first(where: { object.key.bytes.starts(with: $0.prefix.bytes) }),
              let path = path(object.key, in: found.path, found.prefix)
            else { continue }
            try body(path, object.status)
          }
          if page.next == nil { rest = [] }
          guard let greatest = page.greatest else { return true }
          rest = rest.drop {
            $0.prefix < greatest && !greatest.bytes.starts(with: $0.prefix.bytes)
          }
          return rest.first.map { greatest.bytes.starts(with: $0.prefix.bytes) } ?? false
        }
      }
      guard begins else {
        beginsAnywhere = false
        for directory in rest { try forEachObject(below: directory.path, body) }
        return
      }
    }
  }

  /// Returns the directories that are in no other one, with the prefixes of their keys, in key
  /// order.
  private func outermost(_ directories: [ObjectPath]) -> [(path: ObjectPath, prefix: ByteString)] {
    var found: [(path: ObjectPath, prefix: ByteString)] = []
    let all = directories.map { (path: $0, prefix: keys(below: $0)) }
    for directory in all.sorted(by: { $0.prefix < $1.prefix }) {
      if let last = found.last, directory.prefix.bytes.starts(with: last.prefix.bytes) { continue }
      found.append(directory)
    }
    return found
  }

  /// Returns the path of a key below a directory with this prefix. Keys that no path has, such as
  /// `a//b`, belong to another program.
  private func path(
    _ key: ByteString, in directory: ObjectPath, _ prefix: ByteString
  ) -> ObjectPath? {
    let components = key.bytes.dropFirst(prefix.count)
      .split(separator: ByteString.slash, omittingEmptySubsequences: false)
    var path = directory
    for component in components { path = path.appending(ByteString(component)) }
    return self.key(path) == key ? path : nil
  }

  /// Returns the status of an object, or that of a directory if there are objects below the path.
  ///
  /// The listing has the exact time, which the header of an object has in seconds.
  package func status(_ path: ObjectPath) throws(StoreError) -> ObjectStatus? {
    let directory = ObjectStatus(isDirectory: true, size: 0, modified: Timestamp(seconds: 0))
    if path == .root { return directory }
    let own = key(path)
    let first = try page(own, [("max-keys", "1")], of: path)
    if let object = first.objects.first, object.key == own { return object.status }
    if first.objects.isEmpty { return nil }
    let below = try page(keys(below: path), [("max-keys", "1")], of: path)
    return below.objects.isEmpty ? nil : directory
  }

  /// Fetches the pages of a listing until `body`, which gets each page once it is checked, returns
  /// false.
  ///
  /// - Parameter start: the key after which the listing begins; nil to begin with the first one.
  /// - Returns: false if the first page has a key that is not after `start`: the store does not
  ///   know where to begin. `body` gets no page then.
  @discardableResult
  private func forEachPage(
    _ prefix: ByteString, delimiter: String? = nil, after start: ByteString? = nil,
    of directory: ObjectPath, _ body: (S3Listing) throws(StoreError) -> Bool
  ) throws(StoreError) -> Bool {
    var token: String?
    var last = start ?? ""
    var empty = 0
    repeat {
      var query = [("max-keys", "\(Self.pageSize)")]
      if let delimiter { query.append(("delimiter", delimiter)) }
      if let token {
        query.append(("continuation-token", token))
      } else if let start {
        query.append(("start-after", String(decoding: start.bytes, as: UTF8.self)))
      }
      let page = try page(prefix, query, of: directory)
      // A page has to lead further, or the listing would never end.
      if let least = page.least, let greatest = page.greatest {
        guard last.isEmpty || least > last else {
          if token == nil { return false }
          throw wrong("lists '\(least)' after '\(last)'", directory)
        }
        (last, empty) = (greatest, 0)
      } else {
        empty += 1
        guard empty < Self.emptyPages else {
          throw wrong("lists empty pages without end", directory)
        }
      }
      guard try body(page) else { return true }
      token = page.next
    } while token != nil
    return true
  }

  /// Fetches a page and checks that its keys have the prefix.
  private func page(
    _ prefix: ByteString, _ query: [(name: String, value: String)], of path: ObjectPath
  ) throws(StoreError) -> S3Listing {
    var query = query
    query += [
      ("list-type", "2"), ("encoding-type", "url"),
      ("prefix", String(decoding: prefix.bytes, as: UTF8.self)),
    ]
    let request = S3Request(.get, query: query, limit: S3Listing.limits.bytes)
    var answer: [UInt8] = []
    do { _ = try client.send(request, into: &answer) } catch {
      // No object is too large.
      throw error.isTooLarge
        ? wrong("sends a page of a listing of more than 8 MiB", path)
        : self.error(error, to: "list", path)
    }
    let page: S3Listing
    do throws(S3Failure.Words) { page = try S3Listing(reading: answer) } catch {
      throw wrong(error.text, path)
    }
    for key in page.names where !key.bytes.starts(with: prefix.bytes) {
      throw wrong("lists '\(key)', which does not begin with '\(prefix)'", path)
    }
    return page
  }

  private func wrong(_ words: String, _ path: ObjectPath) -> StoreError {
    error(S3Failure(.answer(words, host: client.endpoint.host)), to: "list", path)
  }
}

extension S3Listing {
  /// The keys of the objects, and the common prefixes.
  fileprivate var names: [ByteString] { objects.map(\.key) + prefixes }

  /// The first of these names in the order of their bytes; nil if there is none.
  fileprivate var least: ByteString? { names.min() }

  /// The last of these names; nil if there is none.
  fileprivate var greatest: ByteString? { names.max() }
}

extension S3Listing.Object {
  fileprivate var status: ObjectStatus {
    ObjectStatus(isDirectory: false, size: size, modified: modified)
  }
}
