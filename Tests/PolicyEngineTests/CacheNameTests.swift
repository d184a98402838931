import PolicyEngine
import Testing

/// The names of directories that suggest a cache.
struct CacheNameTests {
  @Test(arguments: [
    "cache", "Cache", "CACHES", "caches", "Cached", "gurd_cache", "PersistentCache", "Image Cache",
    "webcache", "DiskCacheV2", "fsCachedData", "cache-1", "cache.db", "GPUCache", "Code Cache",
    "com.example.cache", "cache cacheable", "Caché cache", "recache", "1cache", "CacheStore",
    "CachedData",
  ]) func suggestsACache(name: String) {
    #expect(CacheName(Array(name.utf8).span) == .cache)
  }

  @Test(arguments: [
    "Thumbnails", "thumbnail", "videoThumbnails", ".thumbnails", "THUMBNAILS_2", "ThumbnailStore",
  ]) func namesOfThumbnailsSuggestACache(name: String) {
    #expect(CacheName(Array(name.utf8).span) == .thumbnails)
  }

  @Test(arguments: ["PHTPhenotype", "CCTClearcutLogger"])
  func isTheDirectoryOfALibrary(name: String) {
    #expect(CacheName(Array(name.utf8).span) == .library)
  }

  @Test(arguments: [
    "", "c", "cach", "Documents", "Cacheable", "CACHEABLE", "cachet", "Caching", "cachés",
    "geocache", "Geocaches", "GeoCache", "CacheStorage", "Thumb", "thumbnailed", "phtphenotype",
    "PHTPhenotypes", "Library", "c\u{e4}che", "cacheü", "CACHEÜ",
  ]) func otherNamesSuggestNoCache(name: String) {
    #expect(CacheName(Array(name.utf8).span) == nil)
  }

  /// Names are bytes; those that are not valid UTF-8 are neither refused nor misread.
  @Test func acceptsAnyBytes() {
    #expect(CacheName([0xff, 0xfe, 0x80, 0x80, 0x80, 0x80].span) == nil)
    #expect(CacheName(([0xff] + Array("Cache".utf8)).span) == .cache)
    #expect(CacheName((Array("Cache".utf8) + [0xff]).span) == nil)
  }

  @Test func irreplaceableClassesAreKept() {
    let kept = DataClass.allCases.filter(\.isKept)
    #expect(kept == [.userData, .inbox, .support, .preferences, .unknown])
  }
}
