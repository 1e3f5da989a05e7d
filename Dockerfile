# The service as an image. `.ci/image.js` follows these steps in a clean folder where there is no Docker engine.
#
# Three stages, so that the image holds neither compilers nor the Prisma command line (227 MB): what is installed to
# build, what is installed to run, and what is shipped. No package needs an install script, so none runs.

FROM node:20-bookworm-slim AS build
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
RUN npm ci --ignore-scripts --no-progress
COPY tsconfig.json ./
COPY scripts scripts
COPY prisma prisma
COPY src src
RUN npm run build

FROM node:20-bookworm-slim AS dependencies
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
RUN npm ci --omit=dev --omit=optional --ignore-scripts --no-progress

FROM node:20-bookworm-slim
WORKDIR /app
ENV NODE_ENV=production
# Only embedded parts write here; it must belong to the user that runs them.
ENV DATA_DIR=/data
RUN mkdir /data && chown node:node /data
COPY --from=dependencies /app/node_modules node_modules
COPY --from=build /app/dist dist
COPY prisma/migrations prisma/migrations
COPY package.json LICENSE ./
USER node
VOLUME /data
# Feed contracts are mounted at /app/contracts. HOST has to be set, together with API_TOKENS_FILE, to be reached from
# outside the container: without them the service listens on its own loopback address alone.
EXPOSE 4000
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s --retries=3 \
  CMD ["node", "-e", "fetch(`http://127.0.0.1:${process.env.PORT || 4000}/healthz`).then((answer) => process.exit(answer.ok ? 0 : 1), () => process.exit(1))"]
ENTRYPOINT ["node", "--enable-source-maps", "dist/main.js"]
CMD ["serve"]
