-- A POST of a body: `wrk … -s post.lua URL -- CONTENT-TYPE BODY`.
function init(args)
   wrk.method = "POST"
   wrk.headers["Content-Type"] = args[1]
   wrk.body = args[2]
end
